SELECT content FROM blobs WHERE hash = ?1
