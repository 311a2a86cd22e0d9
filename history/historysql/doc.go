// Package historysql keeps runs in a SQLite file that several processes, and other engines of the protocol, may use at
// the same time.
//
//	store, err := historysql.Open(ctx, "runs.db", historysql.Options{})
//
// The table history of the file is the protocol's contract (spec: cli-and-config, 5.2): this package uses a file of the
// reference engine as it is, and a file of this package stays valid for that engine. Everything else in the file is
// derived from that table or belongs to this engine alone. FORMAT.md describes the file.
//
// A batch is one transaction. Batches that wait for each other share one, and so a flush. Writers of one process queue,
// writers of different processes retry until BusyTimeout is over, and readers never wait. Once a transaction has begun,
// the caller's context does not end it, so that a connection is never left in the middle of one.
//
// An index holds the rows of other engines that no projection has seen, so that looking for them costs nothing. The next
// Execution or List folds them into the projection of their run.
//
// All writes of a store go through one connection of the driver, which keeps its statements prepared. A pool of
// read-only connections serves the rest.
package historysql
