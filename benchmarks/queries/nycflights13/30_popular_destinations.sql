-- Seats to the ten most popular destinations.
WITH popular AS (
  SELECT dest, count(*) AS flights FROM flights GROUP BY dest ORDER BY flights DESC LIMIT 10
)
SELECT d.name, t.flights, sum(p.seats) AS seats
FROM popular t
JOIN flights f ON f.dest = t.dest
JOIN planes p ON f.tailnum = p.tailnum
JOIN airports d ON t.dest = d.faa
GROUP BY d.name, t.flights
