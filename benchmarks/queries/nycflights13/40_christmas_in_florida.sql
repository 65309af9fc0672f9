-- Flights to Florida around Christmas, with weather and planes. Correlated: latitude, time zone, airline and season.
SELECT a.name, d.name AS destination, avg(w.temp) AS temp, sum(p.seats) AS seats
FROM flights f
JOIN airlines a ON f.carrier = a.carrier
JOIN airports o ON f.origin = o.faa
JOIN airports d ON f.dest = d.faa
JOIN planes p ON f.tailnum = p.tailnum
JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
WHERE d.lat < 31 AND d.lon > -88 AND d.tzone = 'America/New_York' AND a.carrier IN ('B6', 'DL') AND f.month = 12
  AND f.day > 20
GROUP BY a.name, d.name
