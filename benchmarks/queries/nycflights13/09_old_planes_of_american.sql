-- American's oldest planes in service. Correlated: the airline and the year of manufacture.
SELECT p.tailnum, p.year, p.model, count(*) AS flights
FROM flights f
JOIN planes p ON f.tailnum = p.tailnum
JOIN airlines a ON f.carrier = a.carrier
WHERE a.carrier = 'AA' AND p.year < 1992
GROUP BY p.tailnum, p.year, p.model
