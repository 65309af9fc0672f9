-- Long delays in gusts, by airline. Correlated: gusts, pressure and delays.
SELECT a.name, w.origin, count(*) AS late, max(w.wind_gust) AS gust
FROM flights f
JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
JOIN airlines a ON f.carrier = a.carrier
WHERE w.wind_gust > 30 AND w.pressure < 1005 AND f.dep_delay > 60
GROUP BY a.name, w.origin
