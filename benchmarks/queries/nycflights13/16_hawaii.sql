-- Flights to Hawaii and the planes on them. Correlated: the time zone, the distance, and the number of seats.
SELECT d.name, p.manufacturer, p.model, count(*) AS flights
FROM flights f
JOIN airports d ON f.dest = d.faa
JOIN planes p ON f.tailnum = p.tailnum
JOIN airlines a ON f.carrier = a.carrier
WHERE d.tzone = 'Pacific/Honolulu' AND p.seats > 250
GROUP BY d.name, p.manufacturer, p.model
