-- Competing flights: United and American to one airport in one hour. Correlated: the route and the airlines on it.
SELECT a.name, b.name AS other, d.name AS destination, count(*) AS pairs
FROM flights f
JOIN flights g ON f.time_hour = g.time_hour AND f.origin = g.origin AND f.dest = g.dest
JOIN airlines a ON f.carrier = a.carrier
JOIN airlines b ON g.carrier = b.carrier
JOIN airports d ON f.dest = d.faa
WHERE f.carrier = 'UA' AND g.carrier = 'AA'
GROUP BY a.name, b.name, d.name
