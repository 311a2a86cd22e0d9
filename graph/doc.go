// Package graph runs workflows: it joins the pure machine with a history store and executors.
//
//	store, err := historysql.Open(ctx, "runs.db", historysql.Options{})
//	runner, err := graph.New(store, graph.Options{Activities: myExecutor})
//	defer runner.Close()
//	res, err := runner.Start(ctx, graph.StartRequest{Definition: doc, Input: input})
//
// A Runner is safe for concurrent use, by several processes on one database too. Every method checks everything before it changes
// anything: a refused call leaves no record and no changed run. What a method acknowledges is durable. A call waits in line for a
// bounded time (Options.WaitLimit); past it, it answers where the run stands and the run goes on in the background. Answers are
// copies, the caller's to keep.
//
// When a process dies, what it performed for its runs is performed again, with the same idempotency keys, by whoever takes them
// over: a Runner with Options.Background, a call of Recover, or a Start with AllowExisting. Timers are kept in the store and fire
// late rather than never. Runs that wait for a host, a person or a signal wait on. A Runner that takes a run over performs of it
// what it has executors for, and leaves the rest to others (Run.Lacks).
//
// Each call is one file (start.go, submit.go, resume.go, signal.go, cancel.go, status.go, list.go, history.go, recover.go,
// survey.go, fork.go, transfer.go). dispatch.go carries out what calls, outcomes and timers lead to; ownership.go says how runs are
// taken over; answer.go waits and tells where a run stands. The rooms below hold the rest:
//
//	graph/perform    attempts: capabilities, executors, outcomes
//	graph/schedule   timers, the process's lease, the search for orphans
//	graph/notify     who waits for a change, and progress
//	graph/library    definitions and subworkflows
//	graph/replay     proofs by replay, for verify, forks and imports
//	graph/execution  one run: load, apply an input, commit, claim
//	graph/admit      may this call be made, and is it a repetition?
//	graph/runview    the answer
//	graph/machine    the pure walker
package graph
