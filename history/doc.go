// Package history stores runs durably: it defines a run's records, their stored form, the projection derived from them, and the contract of
// stores.
//
// A run is an append-only list of Records, commands (its script) and events (its facts), numbered from 1 without gaps. A Store appends them
// in batches. Each batch is one transaction and names the seq of the record before it. The second of two concurrent writers gets
// HISTORY_CONFLICT, reads again and repeats its decision. The rest of a run's state is derived from its records:
//
//	e := history.Execution{ID: id}
//	for _, r := range records {
//		e.Apply(r) // e.Phase, e.CurrentNodeID, e.Waits, …
//	}
//
// Stores keep this projection in side tables, so that status, list, timers and orphans are lookups. It can be rebuilt at any time, and is
// refreshed if an older version of this engine has written to the run.
//
// The form of records is the protocol's (spec: execution, 2): another engine can read runs of this one. Fields are only ever
// added. DecodePayload reads all payloads of the reference engine; AppendPayload writes exactly the protocol's names. Stores keep payloads in
// plain text, because masked values cannot be replayed; Redact masks payloads that leave the engine.
//
// The package does not depend on a database. Package historysql keeps runs in a SQLite file, package historymem in memory; package
// historytest contains the tests of both.
package history
