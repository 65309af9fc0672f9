-- Delays at Newark while it snows. Correlated: cold, precipitation and the winter months.
SELECT f.month, f.day, avg(f.dep_delay) AS delay, count(*) AS flights
FROM flights f
JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
JOIN airlines a ON f.carrier = a.carrier
WHERE w.origin = 'EWR' AND w.temp < 32 AND w.precip > 0 AND f.month IN (12, 1, 2)
GROUP BY f.month, f.day
ORDER BY delay DESC
