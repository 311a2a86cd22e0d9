// Package graph runs workflows: it joins the pure machine with a history store and executors.
//
//	store, err := historysql.Open(ctx, "runs.db", historysql.Options{})
//	runner, err := graph.New(store, graph.Options{Activities: myExecutor})
//	defer runner.Close()
//	res, err := runner.Start(ctx, graph.StartRequest{Definition: doc, Input: input})
//
// A Runner is safe for concurrent use, by several processes on one database too. Every method checks everything
// before it changes anything: a refused call leaves no record and no changed run. What a method acknowledges is
// durable. A call waits in line for a bounded time (Options.WaitLimit); past it, it answers where the run stands and
// the run goes on in the background. Answers are copies, the caller's to keep.
//
// When a process dies, what it performed for its runs is performed again, with the same idempotency keys, by whoever
// takes them over: a Runner with Options.Background, a call of Recover, or a Start with AllowExisting. Timers are kept
// in the store and fire late rather than never. Runs that wait for a host, a person or a signal wait on. A Runner that
// takes a run over performs of it what it has executors for, and leaves the rest to others (Run.Lacks).
//
// How it works, front to back: run.go says what a run is here and who may touch it; apply.go and commit.go are the one
// way in which a run moves; drive.go and effects.go perform what comes of it, children.go subworkflows; fitness.go
// says which effects are left to other processes, unknown.go which subworkflows; timers.go, alarms.go and lease.go are
// what time brings; load.go rebuilds a machine; start.go, deliver.go and cancel.go are the calls, recover.go and survey.go
// those for runs without a driver; wait.go and view.go the answers.
package graph
