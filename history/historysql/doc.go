// Package historysql keeps runs in a SQLite file that several processes may use at the same time.
//
//	store, err := historysql.Open(ctx, "runs.db", historysql.Options{})
//
// FORMAT.md describes the file. A file of the npm engine is rejected; OpenEngineFile reads it for an import.
//
// A batch is one transaction. Batches that wait for each other share one, and so a flush. Writers of one process queue,
// writers of different processes retry until BusyTimeout is over, and readers never wait. Once a transaction has begun,
// the caller's context does not end it, so that a connection is never left in the middle of one.
//
// All writes of a store go through one connection of the driver, which keeps its statements prepared. A pool of
// read-only connections serves the rest.
package historysql
