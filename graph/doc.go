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
// the run goes on in the background.
package graph
