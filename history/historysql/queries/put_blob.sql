INSERT INTO blobs (hash, content) VALUES (?1, ?2) ON CONFLICT (hash) DO NOTHING
