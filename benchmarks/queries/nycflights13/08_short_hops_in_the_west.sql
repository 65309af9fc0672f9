-- Flights to the Mountain time zone of less than 1,000 miles. Correlated: time zone and distance (there are none).
SELECT d.faa, count(*) AS flights
FROM flights f
JOIN airports d ON f.dest = d.faa
JOIN planes p ON f.tailnum = p.tailnum
WHERE d.tzone = 'America/Denver' AND f.distance < 1000
GROUP BY d.faa
