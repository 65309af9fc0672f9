-- Flights to places without daylight saving time. Correlated: the rule of the clock, the time zone and the distance.
SELECT d.name, a.name AS airline, count(*) AS flights
FROM flights f
JOIN airports d ON f.dest = d.faa
JOIN airlines a ON f.carrier = a.carrier
JOIN planes p ON f.tailnum = p.tailnum
WHERE d.dst = 'N' AND f.distance > 2000
GROUP BY d.name, a.name
