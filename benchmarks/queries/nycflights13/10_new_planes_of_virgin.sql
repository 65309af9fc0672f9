-- Virgin America's planes that are at most five years old. Correlated: the airline, the year of manufacture, the maker.
SELECT p.model, p.year, d.name, count(*) AS flights
FROM flights f
JOIN planes p ON f.tailnum = p.tailnum
JOIN airports d ON f.dest = d.faa
JOIN airlines a ON f.carrier = a.carrier
WHERE a.name = 'Virgin America' AND p.year >= 2008 AND p.manufacturer LIKE 'AIRBUS%'
GROUP BY p.model, p.year, d.name
