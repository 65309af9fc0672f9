-- United's flights to its hubs from Newark. Correlated: the airline, the origin and the destination.
SELECT d.name, f.month, count(*) AS flights
FROM flights f
JOIN airlines a ON f.carrier = a.carrier
JOIN airports o ON f.origin = o.faa
JOIN airports d ON f.dest = d.faa
WHERE a.carrier = 'UA' AND o.faa = 'EWR' AND d.faa IN ('IAH', 'ORD', 'SFO', 'DEN')
GROUP BY d.name, f.month
