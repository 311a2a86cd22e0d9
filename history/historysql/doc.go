// Package historysql keeps runs in a SQLite file that several processes, and other engines of the protocol, may use at
// the same time.
//
//	store, err := historysql.Open(ctx, "runs.db", historysql.Options{})
//
// The file's table history is the protocol's contract (spec: cli-and-config, 5.2): a file that the reference engine has
// made is taken over as it is, and a file made here stays valid for it. Everything else in the file is derived from
// that table, or belongs to this engine alone. FORMAT.md describes the file.
//
// A batch is one transaction and one flush. Writers of one process wait for each other in line, those of different
// processes by asking again until BusyTimeout is over; readers wait for nobody. Once a transaction has begun, a
// caller's cancel does not end it, so a connection is never left in the middle of one.
//
// Rows that another engine has written are noticed without looking for them, through an index that holds nothing
// else. They are folded into the run's projection by the next Execution or List.
//
// All of a store's writes go through one connection of the driver, which keeps its statements prepared; a pool of
// read-only connections serves the rest.
package historysql
