-- Weather in hours without any late departure at Kennedy. Correlated: the hour, the weather and the delays.
SELECT w.month, w.hour, avg(w.temp) AS temp, count(*) AS flights
FROM weather w
JOIN flights f ON f.origin = w.origin AND f.time_hour = w.time_hour
JOIN airlines a ON f.carrier = a.carrier
WHERE w.origin = 'JFK' AND w.visib = 10 AND w.precip = 0 AND NOT EXISTS (
  SELECT 1 FROM flights g WHERE g.origin = w.origin AND g.time_hour = w.time_hour AND g.dep_delay > 15
)
GROUP BY w.month, w.hour
