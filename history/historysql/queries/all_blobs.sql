SELECT hash, content, (SELECT count(*) FROM blob_refs WHERE blob = number) FROM blobs ORDER BY number
