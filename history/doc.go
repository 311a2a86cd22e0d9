// Package history is the durable memory of runs: the records of a run, their stored form, what follows from them, and the
// contract of the stores that keep them.
//
// A run is an append-only list of Records, commands (its script) and events (its facts), numbered from 1 without gaps.
// A Store appends them in batches, each in one transaction that names the record that it expects to follow. The second of two
// writers gets HISTORY_CONFLICT, reads again and repeats its decision. Everything else about a run follows from its records:
//
//	e := history.Execution{ID: id}
//	for _, r := range records {
//		e.Apply(r) // e.Phase, e.CurrentNodeID, e.Waits, …
//	}
//
// Stores keep that projection in side tables, so that status, list, timers and orphans are lookups. It can be rebuilt at any
// time, and is refreshed if another engine has written to the run.
//
// The form of records is the protocol's (spec: execution, 2): another engine can read and continue what this one
// writes. Members are only ever added. DecodePayload reads whatever the reference engine writes; AppendPayload writes exactly
// the protocol's names. Stores keep payloads in plain text, because masked values cannot be replayed; Redact masks what
// leaves the engine.
//
// The package depends on no database. Package historysql keeps runs in a SQLite file, package historymem in memory; package
// historytest holds the tests that both pass.
package history
