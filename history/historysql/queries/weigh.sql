SELECT
    (SELECT count(DISTINCT execution_id) FROM history),
    (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size)
