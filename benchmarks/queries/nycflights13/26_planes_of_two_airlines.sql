-- Planes that both ExpressJet and Endeavor fly. Correlated: the tail number and the airline (almost always one).
SELECT p.tailnum, p.model, count(*) AS pairs
FROM flights f
JOIN flights g ON f.tailnum = g.tailnum
JOIN planes p ON f.tailnum = p.tailnum
WHERE f.carrier = 'EV' AND g.carrier = '9E' AND f.month = 3 AND g.month = 3
GROUP BY p.tailnum, p.model
