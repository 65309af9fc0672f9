-- Airlines whose flights are cancelled in strong wind. Correlated: cancellation and the wind and sight at departure.
SELECT a.name, count(*) AS cancelled
FROM flights f
JOIN weather w ON f.origin = w.origin AND f.year = w.year AND f.month = w.month AND f.day = w.day AND f.hour = w.hour
JOIN airlines a ON f.carrier = a.carrier
WHERE f.dep_time IS NULL AND w.wind_speed > 25 AND w.visib < 5
GROUP BY a.name
ORDER BY cancelled DESC
