package graph_test

import (
	"context"
	"fmt"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// A run keeps the trace parent of its start, whichever process performs its attempts.
func ExampleWithTraceParent() {
	const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	ctx, store := context.Background(), historymem.New()
	doc, err := definition.ParseYAML([]byte(greetWorkflow))
	check(err)
	request := graph.StartRequest{Definition: doc}
	executor := activities.ExecutorFunc(func(ctx context.Context, _ activities.Request) (activities.Result, error) {
		fmt.Println(graph.TraceParent(ctx)) // of the run, at each attempt
		return activities.Result{}, nil
	})
	runner, err := graph.New(store, graph.Options{Activities: activities.Composite{Step: executor}})
	check(err)
	defer runner.Close()
	run, err := runner.Start(graph.WithTraceParent(ctx, traceparent), request) // the header of W3C Trace Context
	check(err)
	fmt.Println(run.Status)
	// Output:
	// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
	// completed
}
