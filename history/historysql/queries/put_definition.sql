INSERT INTO definitions (hash, name, version, text, signature) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (hash) DO UPDATE SET signature = excluded.signature WHERE excluded.signature NOT IN ('', signature)
