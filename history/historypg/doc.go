// Package historypg keeps runs in a schema of a PostgreSQL database, version 14 or newer, that processes of several machines may use at the same
// time.
//
//	store, err := historypg.Open(ctx, "postgres://workflows@db.example.org/runs", historypg.Options{})
//
// FORMAT.md describes the tables. Each append is one statement and one transaction. Appends of a process that wait at the same time share a
// transaction, and so a round trip and a flush. Readers never wait for writers.
//
// Times are those of the server. A process's own clock decides nothing, so it does not matter whether the clocks of the machines agree.
package historypg
