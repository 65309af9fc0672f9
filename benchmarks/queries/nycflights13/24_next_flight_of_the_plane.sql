-- Delays of later flights of a plane on a day on which an earlier one came late.
SELECT a.name, avg(g.dep_delay) AS second_delay
FROM flights f
JOIN flights g ON f.tailnum = g.tailnum AND f.year = g.year AND f.month = g.month AND f.day = g.day
JOIN airlines a ON f.carrier = a.carrier
WHERE f.arr_delay > 60 AND g.sched_dep_time > f.sched_dep_time
GROUP BY a.name
