-- The small airlines and where they fly. Correlated: the airline, the origin and the months in which it flies.
SELECT a.name, o.name AS origin, d.name AS destination, f.month, count(*) AS flights
FROM flights f
JOIN airlines a ON f.carrier = a.carrier
JOIN airports o ON f.origin = o.faa
JOIN airports d ON f.dest = d.faa
WHERE a.name IN ('Mesa Airlines Inc.', 'SkyWest Airlines Inc.') AND f.origin = 'LGA' AND f.month >= 9
GROUP BY a.name, o.name, d.name, f.month
