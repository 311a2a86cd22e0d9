-- What the records of a run take, so that a run that grows too large is noticed without counting.
ALTER TABLE executions ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE executions SET bytes = (
    SELECT COALESCE(sum(octet_length(payload_json)), 0) FROM history WHERE history.execution_id = executions.execution_id
) + (
    SELECT COALESCE(sum(octet_length(content)), 0) FROM blob_refs JOIN blobs ON number = blob
    WHERE blob_refs.execution_id = executions.execution_id
);
