SELECT
    (SELECT application_id FROM pragma_application_id),
    (SELECT user_version FROM pragma_user_version),
    (SELECT count(*) FROM sqlite_schema),
    (SELECT json_group_object(name, pk) FROM pragma_table_info('history'))
