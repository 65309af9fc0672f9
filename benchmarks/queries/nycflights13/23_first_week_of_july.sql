-- One row per flight of the first week of July with all that is known of it.
SELECT f.time_hour, a.name AS airline, o.name AS origin, d.name AS destination, p.model, w.temp
FROM flights f
JOIN airlines a ON f.carrier = a.carrier
JOIN airports o ON f.origin = o.faa
JOIN airports d ON f.dest = d.faa
JOIN planes p ON f.tailnum = p.tailnum
JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
WHERE f.month = 7 AND f.day <= 7
