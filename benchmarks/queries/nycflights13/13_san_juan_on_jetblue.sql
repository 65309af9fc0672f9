-- Planes that JetBlue sends to the Caribbean in winter. Correlated: the airline and the destination.
SELECT p.model, o.name, count(*) AS flights
FROM flights f
JOIN planes p ON f.tailnum = p.tailnum
JOIN airports o ON f.origin = o.faa
WHERE f.dest IN ('SJU', 'BQN', 'STT', 'PSE') AND f.carrier = 'B6' AND f.month <= 3
GROUP BY p.model, o.name
