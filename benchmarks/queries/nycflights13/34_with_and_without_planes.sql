-- Seats by airline in October, counting planes that the register lacks.
SELECT a.name, count(*) AS flights, count(p.tailnum) AS registered, sum(p.seats) AS seats
FROM flights f
JOIN airlines a ON f.carrier = a.carrier
JOIN airports d ON f.dest = d.faa
LEFT JOIN planes p ON f.tailnum = p.tailnum
WHERE f.month = 10
GROUP BY a.name
