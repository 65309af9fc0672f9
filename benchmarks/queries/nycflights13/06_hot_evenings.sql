-- Late departures on hot evenings. Correlated: temperature, month and hour of the day.
SELECT w.origin, w.hour, count(*) AS late
FROM flights f
JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
JOIN airports d ON f.dest = d.faa
WHERE w.temp > 90 AND f.hour >= 17 AND f.dep_delay > 30
GROUP BY w.origin, w.hour
