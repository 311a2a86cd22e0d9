// Package history is the durable memory of runs: the records that a run consists of, what they look like when stored,
// what can be told from them, and the contract of the stores that keep them.
//
// A run is an append-only list of Records, commands (its script) and events (its facts), numbered from 1 without gaps.
// A Store appends them in batches, each in one transaction that names the record it expects to follow; whoever comes
// second gets HISTORY_CONFLICT, reads again and decides anew. Everything else about a run follows from its records:
//
//	e := history.Execution{ID: id}
//	for _, r := range records {
//		e.Apply(r) // e.Phase, e.CurrentNodeID, e.Waits, …
//	}
//
// Stores keep that projection beside the records, so that status, list, timers and orphans are lookups. It can be
// rebuilt at any time, and is brought up to date where another engine has written to a run.
//
// The form of records is the protocol's (spec: execution, 2): another engine can read and continue what this one
// writes. Members are only ever added. DecodePayload reads whatever the reference engine writes; AppendPayload writes
// exactly the protocol's names. Stores keep payloads in plain text, because what is masked cannot be replayed; see
// Redaction for the way out.
//
// The package knows no database. Package historysql keeps runs in a SQLite file, package historymem in memory; package
// historytest holds the tests that both have to pass.
package history
