-- Models of planes with more than 300 departures in the year.
WITH busy AS (
  SELECT tailnum, count(*) AS departures FROM flights WHERE tailnum IS NOT NULL GROUP BY tailnum HAVING count(*) > 300
)
SELECT p.model, a.name, count(*) AS flights
FROM busy t
JOIN planes p ON t.tailnum = p.tailnum
JOIN flights f ON f.tailnum = t.tailnum
JOIN airlines a ON f.carrier = a.carrier
GROUP BY p.model, a.name
