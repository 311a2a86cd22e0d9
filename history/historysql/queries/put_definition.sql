INSERT INTO definitions (hash, name, version, text) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (hash) DO NOTHING
