// Package historysql keeps runs in a SQLite file that several processes may use at the same time.
//
//	store, err := historysql.Open(ctx, "runs.db", historysql.Options{})
//
// FORMAT.md describes the file. A file of the npm engine is rejected; OpenEngineFile reads it for an import.
//
// A batch is one transaction. Waiting batches of a process share a transaction, and so a flush. Writers of one process queue, writers of
// different processes retry until BusyTimeout is over, and readers never wait. Once a transaction has begun, the caller's context no longer
// ends it.
//
// All writes of a store use one driver connection with prepared statements. Reads use a pool of read-only connections.
package historysql
