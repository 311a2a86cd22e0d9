SELECT hash FROM blobs JOIN blob_refs ON blob = number WHERE execution_id = ?1
