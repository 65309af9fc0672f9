-- How far JetBlue flies its Embraer planes. Correlated: the airline, the maker, and the distance of its routes.
SELECT f.origin, d.tzone, min(f.distance) AS nearest, max(f.distance) AS farthest
FROM flights f
JOIN planes p ON f.tailnum = p.tailnum
JOIN airports d ON f.dest = d.faa
WHERE f.carrier = 'B6' AND p.manufacturer = 'EMBRAER' AND f.distance < 800
GROUP BY f.origin, d.tzone
