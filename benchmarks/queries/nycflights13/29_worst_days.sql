-- Airlines on the ten days with the longest delays, with the weather of these days.
WITH worst AS (
  SELECT year, month, day, avg(dep_delay) AS delay
  FROM flights
  GROUP BY year, month, day
  ORDER BY delay DESC
  LIMIT 10
)
SELECT a.name, t.month, t.day, avg(f.dep_delay) AS delay, max(w.precip) AS precip
FROM worst t
JOIN flights f ON f.year = t.year AND f.month = t.month AND f.day = t.day
JOIN airlines a ON f.carrier = a.carrier
JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
GROUP BY a.name, t.month, t.day
