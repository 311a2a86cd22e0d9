INSERT INTO clocks (boot, leases, floor, seen) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (boot) DO UPDATE SET floor = excluded.floor, seen = excluded.seen
