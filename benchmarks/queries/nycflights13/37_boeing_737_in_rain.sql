-- Boeing 737-800s in rain. Correlated: the model, the maker and the seats; rain and humidity.
SELECT a.name, w.origin, count(*) AS flights, avg(f.dep_delay) AS delay
FROM flights f
JOIN planes p ON f.tailnum = p.tailnum
JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
JOIN airlines a ON f.carrier = a.carrier
WHERE p.manufacturer = 'BOEING' AND p.model LIKE '737-8%' AND p.seats > 140 AND w.precip > 0.05 AND w.humid > 80
GROUP BY a.name, w.origin
