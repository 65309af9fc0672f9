-- Flights of others to Los Angeles on models that Delta also has. Correlated: the model and the airline.
SELECT a.name, p.model, count(*) AS flights
FROM flights f
JOIN planes p ON f.tailnum = p.tailnum
JOIN airlines a ON f.carrier = a.carrier
WHERE f.dest = 'LAX' AND f.carrier <> 'DL' AND EXISTS (
  SELECT 1 FROM flights g JOIN planes x ON g.tailnum = x.tailnum WHERE g.carrier = 'DL' AND x.model = p.model
)
GROUP BY a.name, p.model
