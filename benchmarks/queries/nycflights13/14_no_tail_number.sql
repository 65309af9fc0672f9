-- Flights without a tail number. Correlated: a NULL tail number, cancellation, and the airline.
SELECT a.name, d.name AS destination, count(*) AS flights
FROM flights f
JOIN airlines a ON f.carrier = a.carrier
JOIN airports d ON f.dest = d.faa
WHERE f.tailnum IS NULL AND f.dep_time IS NULL
GROUP BY a.name, d.name
