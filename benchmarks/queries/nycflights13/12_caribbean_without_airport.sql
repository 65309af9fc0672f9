-- Flights to airports that the table lacks (SJU, BQN, STT, PSE). Correlated: the missing airports and the airline.
SELECT f.dest, a.name, count(*) AS flights
FROM flights f
JOIN airlines a ON f.carrier = a.carrier
JOIN planes p ON f.tailnum = p.tailnum
WHERE NOT EXISTS (SELECT 1 FROM airports d WHERE d.faa = f.dest)
GROUP BY f.dest, a.name
