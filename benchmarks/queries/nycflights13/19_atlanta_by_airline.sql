-- Who flies to Atlanta, and with how many seats. Correlated: the destination and the airline.
SELECT a.name, sum(p.seats) AS seats
FROM flights f
JOIN airlines a ON f.carrier = a.carrier
JOIN planes p ON f.tailnum = p.tailnum
JOIN airports d ON f.dest = d.faa
WHERE d.name = 'Hartsfield Jackson Atlanta Intl' AND a.name IN ('Delta Air Lines Inc.', 'AirTran Airways Corporation')
GROUP BY a.name
