-- Temperature at the early flights to the west. Correlated: the hour, the destination's time zone and the temperature.
SELECT d.tzone, avg(w.temp) AS temp, count(*) AS flights
FROM flights f
JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
JOIN airports d ON f.dest = d.faa
WHERE f.hour < 7 AND d.tz <= -7 AND w.temp < 40
GROUP BY d.tzone
