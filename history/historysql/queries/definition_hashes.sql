SELECT DISTINCT json_extract(projection, '$.hash') FROM executions WHERE json_valid(projection)
