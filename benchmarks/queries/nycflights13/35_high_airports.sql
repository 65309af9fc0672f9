-- Planes to airports above 4,000 feet in ski season. Correlated: altitude, time zone, distance and month.
SELECT d.name, p.model, count(*) AS flights
FROM flights f
JOIN airports d ON f.dest = d.faa
JOIN planes p ON f.tailnum = p.tailnum
WHERE d.alt > 4000 AND d.tz = -7 AND f.distance BETWEEN 1500 AND 2100 AND f.month IN (1, 2, 3, 12)
GROUP BY d.name, p.model
