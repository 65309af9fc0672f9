-- Regional jets in fog. Correlated: seats and airline, sight and humidity.
SELECT a.name, p.model, count(*) AS flights, avg(f.dep_delay) AS delay
FROM flights f
JOIN planes p ON f.tailnum = p.tailnum
JOIN airlines a ON f.carrier = a.carrier
JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
WHERE p.seats BETWEEN 50 AND 60 AND w.visib < 1 AND w.humid > 90
GROUP BY a.name, p.model
