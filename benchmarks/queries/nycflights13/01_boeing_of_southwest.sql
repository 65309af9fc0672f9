-- Arrival delays of Southwest by model of its planes. Correlated: the airline and the maker of its planes (all Boeing).
SELECT p.model, count(*) AS flights, avg(f.arr_delay) AS delay
FROM flights f
JOIN airlines a ON f.carrier = a.carrier
JOIN planes p ON f.tailnum = p.tailnum
WHERE a.name = 'Southwest Airlines Co.' AND p.manufacturer = 'BOEING'
GROUP BY p.model
