-- Endeavor's Bombardier planes to places above 500 feet. Correlated: the airline, the maker and the model.
SELECT d.name, p.model, count(*) AS flights
FROM flights f
JOIN planes p ON f.tailnum = p.tailnum
JOIN airports d ON f.dest = d.faa
JOIN airlines a ON f.carrier = a.carrier
WHERE a.name = 'Endeavor Air Inc.' AND p.manufacturer = 'BOMBARDIER INC' AND p.model = 'CL-600-2D24' AND d.alt > 500
GROUP BY d.name, p.model
