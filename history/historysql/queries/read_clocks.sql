SELECT COALESCE(max(leases) FILTER (WHERE boot = ?1), 0), COALESCE(max(floor) FILTER (WHERE boot = ?1), 0),
    COALESCE(max(seen) FILTER (WHERE seen <= ?2), 0) FROM clocks
