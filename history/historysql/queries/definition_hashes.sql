SELECT json_extract(projection, '$.hash') FROM executions WHERE json_valid(projection)
UNION
SELECT child.value FROM executions, json_each(projection, '$.subworkflows') AS child WHERE json_valid(projection)
