// Package graph runs workflows: it joins the pure machine with a history store and executors.
//
//	store, err := historysql.Open(ctx, "runs.db", historysql.Options{})
//	defer store.Close() // runs after runner.Close
//	runner, err := graph.New(store, graph.Options{Activities: myExecutor, Background: true})
//	defer runner.Close()
//	doc, err := definition.ParseYAML(text)
//	run, err := runner.Start(ctx, graph.StartRequest{Definition: doc, Input: input})
//
// A Runner is safe for concurrent use, by several processes on one database too. Every method checks everything before it changes
// anything: a refused call leaves no record and no changed run. What a method acknowledges is durable. A call waits for its run for
// a bounded time (Options.WaitLimit), then returns where the run stands; the run continues in the background. Answers are copies.
//
// A restarted program does not continue its runs by itself: set Options.Background, or call Recover, Drive (one run, until it ends
// or waits for somebody), or Start with AllowExisting. After a crash, attempts that were in flight wait until the lease of the dead
// process has run out (Options.LeaseTTL); they are executed again, with the same idempotency keys. Timers are kept in the store and
// fire late rather than never. A Runner executes nodes that it has executors for, and leaves the rest to other processes (Run.Lacks).
//
// Errors are *problem.Error; match their codes with errors.Is. One code of the protocol may stand for several causes, which a second
// code tells apart (problem.Error.Reason). An HTTP layer asks from top to bottom:
//
//	404  EXECUTION_NOT_FOUND (every call that names an unknown run, whatever its Code), WORKFLOW_NOT_FOUND
//	409  ANSWERED_DIFFERENTLY (SubmitActivity, Resume, Signal: taken before, with another content), ANSWER_AMBIGUOUS (Resume without
//	     an id), NOT_AWAITING (the run does not wait for it), EXECUTION_ENDED, DUPLICATE_EXECUTION_ID (Start and Fork; with AllowExisting, if the run is another one)
//	422  VALIDATION_ERROR, INTERRUPT_IN_PARALLEL_BRANCH, COMPOSITE_EXECUTOR_NOT_CONFIGURED (Start), SUBMIT_VALIDATION_ERROR,
//	     INVALID_RESUME_PAYLOAD, SIGNAL_VALIDATION_ERROR, CANCEL_VALIDATION_ERROR, INVALID_LIST_CURSOR
//	503  STORE_LOCKED, STORE_UNAVAILABLE, ENGINE_CLOSED; anything else is 500
//
// Each call is one file, such as start.go. dispatch.go starts the work that calls, outcomes and timers lead to; attempts.go performs
// attempts and records their outcomes; ownership.go takes runs over; answer.go waits for a run and answers. The packages below:
//
//	graph/view               where a run is and what it waits for: the answer of every call
//	graph/machine            the pure walker
//	graph/internal/run       one run: load, apply an input, commit, claim
//	graph/internal/work      attempts: executors, outcomes, limits
//	graph/internal/process   the process's lease, timers, orphaned runs, waiting calls
//	graph/internal/library   definitions and subworkflows
//	graph/internal/admit     may this call be made, and does it repeat one?
//	graph/internal/transfer  export, import, fork, replay
//	graph/internal/outbox    webhook deliveries
package graph
