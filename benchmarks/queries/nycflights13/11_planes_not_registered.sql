-- Airlines whose planes are missing in the register. Correlated: the airline and the missing planes (AA and MQ).
SELECT a.name, count(*) AS flights
FROM flights f
JOIN airlines a ON f.carrier = a.carrier
WHERE f.tailnum IS NOT NULL AND NOT EXISTS (SELECT 1 FROM planes p WHERE p.tailnum = f.tailnum)
GROUP BY a.name
ORDER BY flights DESC
