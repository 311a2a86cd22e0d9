// Package graph runs workflows: it joins the pure machine with a history store and executors.
//
//	store, err := historysql.Open(ctx, "runs.db", historysql.Options{})
//	defer store.Close() // runs after runner.Close
//	runner, err := graph.New(store, graph.Options{Activities: myExecutor, Work: graph.WorkAll})
//	defer runner.Close()
//	doc, err := definition.ParseYAML(text)
//	run, err := runner.Start(ctx, graph.StartRequest{Definition: doc, Input: input})
//
// A Runner is safe for concurrent use, also by several processes on one database. Each method checks everything before it changes
// anything: after an error, no record has been written. Acknowledged changes are durable. A call waits for its run for a limited time
// (Options.WaitLimit), then returns its status; the run continues in the background. Results are copies.
//
// A restarted program does not continue its runs by itself: set Options.Work to WorkAll, or call Recover, Drive (one run, until it ends or
// needs input), or Start with AllowExisting. After a crash, running attempts wait until the lease of the dead process has expired
// (Options.LeaseTTL); they are then repeated, with the same idempotency keys. Timers are stored, and fire late rather than never. A
// Runner executes the nodes that it has executors for, and leaves others to other processes (Run.Lacks).
//
// Errors are *problem.Error; match their codes with errors.Is. A code of the protocol can have several causes, which a second code
// distinguishes (problem.Error.Reason). An HTTP layer can map them in this order:
//
//	404  EXECUTION_NOT_FOUND (every call that names an unknown run, whatever its Code), WORKFLOW_NOT_FOUND
//	409  ANSWERED_DIFFERENTLY (SubmitActivity, Resume, Signal: recorded with another content), ANSWER_AMBIGUOUS (Resume without an
//	     id), NOT_AWAITING (the run does not wait for it), EXECUTION_ENDED, DUPLICATE_EXECUTION_ID (Start, Fork)
//	422  VALIDATION_ERROR, INTERRUPT_IN_PARALLEL_BRANCH, COMPOSITE_EXECUTOR_NOT_CONFIGURED (Start), SUBMIT_VALIDATION_ERROR,
//	     INVALID_RESUME_PAYLOAD, SIGNAL_VALIDATION_ERROR, CANCEL_VALIDATION_ERROR, INVALID_LIST_CURSOR
//	503  STORE_LOCKED, STORE_UNAVAILABLE, ENGINE_CLOSED; anything else is 500
//
// Each call has its file, such as start.go; deliver.go finds the run of a tree that an input is for. The packages below:
//
//	graph/view               the status of a run: the result of every call
//	graph/machine            the pure walker
//	graph/internal/run       one run: load, apply an input, commit, claim
//	graph/internal/work      attempts: executors, outcomes, limits
//	graph/internal/process   drives runs: dispatch, attempts, lease, timers, orphaned runs, waiting calls
//	graph/internal/library   definitions and subworkflows
//	graph/internal/admit     checks of calls, and detection of repeated ones
//	graph/internal/transfer  export, import, fork, replay
//	graph/internal/outbox    webhook deliveries
package graph
