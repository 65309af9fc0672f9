-- Delta's McDonnell Douglas planes from LaGuardia. Correlated: the airline, the origin, the maker and the age.
SELECT d.name, count(*) AS flights
FROM flights f
JOIN planes p ON f.tailnum = p.tailnum
JOIN airports o ON f.origin = o.faa
JOIN airports d ON f.dest = d.faa
WHERE o.name = 'La Guardia' AND f.carrier = 'DL' AND p.manufacturer LIKE 'MCDONNELL DOUGLAS%' AND p.year < 1995
GROUP BY d.name
