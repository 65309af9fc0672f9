-- Average delay by airline and time zone of the destination.
SELECT a.name, d.tzone, avg(f.arr_delay) AS delay
FROM flights f
JOIN airlines a ON f.carrier = a.carrier
JOIN airports d ON f.dest = d.faa
GROUP BY a.name, d.tzone
