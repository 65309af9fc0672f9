-- Flights on planes with fewer than ten seats. Correlated: seats, type and number of engines.
SELECT p.manufacturer, p.model, a.name, count(*) AS flights
FROM flights f
JOIN planes p ON f.tailnum = p.tailnum
JOIN airlines a ON f.carrier = a.carrier
WHERE p.seats < 10 AND p.engines = 1 AND p.type = 'Fixed wing single engine'
GROUP BY p.manufacturer, p.model, a.name
