-- Which airports United serves with Airbus planes. Correlated: the airline and the maker, which has three spellings.
SELECT d.name, count(*) AS flights
FROM flights f
JOIN planes p ON f.tailnum = p.tailnum
JOIN airports d ON f.dest = d.faa
JOIN airlines a ON f.carrier = a.carrier
WHERE a.name = 'United Air Lines Inc.' AND p.manufacturer IN ('AIRBUS', 'AIRBUS INDUSTRIE')
GROUP BY d.name
ORDER BY flights DESC
