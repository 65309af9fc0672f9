-- Long flights to the Pacific coast. Correlated: the time zone of the destination and the distance.
SELECT d.name, a.name AS airline, count(*) AS flights, avg(f.air_time) AS minutes
FROM flights f
JOIN airports d ON f.dest = d.faa
JOIN airlines a ON f.carrier = a.carrier
WHERE d.tzone = 'America/Los_Angeles' AND f.distance > 2300
GROUP BY d.name, a.name
