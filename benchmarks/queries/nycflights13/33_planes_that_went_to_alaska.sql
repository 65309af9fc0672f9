-- Other destinations of planes that have flown to Anchorage.
SELECT d.name, count(*) AS flights
FROM flights f
JOIN airports d ON f.dest = d.faa
JOIN planes p ON f.tailnum = p.tailnum
WHERE f.tailnum IN (
  SELECT g.tailnum FROM flights g JOIN airports x ON g.dest = x.faa WHERE x.tzone = 'America/Anchorage'
)
GROUP BY d.name
ORDER BY flights DESC
