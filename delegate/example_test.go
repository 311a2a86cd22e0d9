package delegate_test

import (
	"context"
	"fmt"
	"log"

	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

const reviewWorkflow = `{
	"document": {"schema": "urn:awp:schema", "name": "review", "version": "1"},
	"state_schema": {"type": "object"},
	"nodes": [
		{"id": "begin", "type": "start"},
		{"id": "review", "type": "agent_delegate",
		 "config": {"agent_id": "reviewer", "protocol": "sdk", "input_mapping": {"file": "${ .file }"}}},
		{"id": "done", "type": "end", "config": {"output_mapping": ".verdict"}}
	],
	"edges": [
		{"source": "__start__", "target": "begin"},
		{"source": "begin", "target": "review"},
		{"source": "review", "target": "done"}
	]
}`

// A Go function plays an agent of protocol sdk.
func ExampleRegisterAgent() {
	type task struct {
		File string `json:"file"`
	}
	type review struct {
		Verdict string `json:"verdict"`
	}
	var agents delegate.SDK
	err := delegate.RegisterAgent(&agents, "reviewer", func(_ context.Context, call delegate.Call[task]) (review, error) {
		return review{Verdict: call.Input.File + " looks good"}, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	runner, err := graph.New(historymem.New(), graph.Options{Delegates: delegate.Composite{SDK: &agents}})
	if err != nil {
		log.Fatal(err)
	}
	defer runner.Close()
	doc, err := definition.Parse([]byte(reviewWorkflow))
	if err != nil {
		log.Fatal(err)
	}
	run, err := runner.Start(context.Background(), graph.StartRequest{Definition: doc, Input: map[string]any{"file": "go.mod"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Status, run.Result)
	// Output: completed go.mod looks good
}

// queue is an executor of one's own: it puts tasks on a queue, and the engine looks from time to time what became of them.
type queue struct{ done map[string]any }

func (q queue) HasTask(delegate.Request) bool { return true }

func (q queue) Send(_ context.Context, req delegate.Request) (delegate.Task, error) {
	// The key is the same if the engine crashes and sends the task again.
	q.done[req.IdempotencyKey] = map[string]any{"verdict": fmt.Sprint(req.Input["file"], " was reviewed")}
	return delegate.Task{ID: req.IdempotencyKey}, nil
}

func (q queue) Poll(_ context.Context, _ delegate.Request, task delegate.TaskRef) (delegate.Task, error) {
	if output, ok := q.done[task.ID]; ok {
		return delegate.Task{State: delegate.TaskCompleted, Output: output}, nil
	}
	return delegate.Task{}, nil // still at it
}

func (q queue) Answer(context.Context, delegate.Request, delegate.TaskRef, map[string]any) (delegate.Task, error) {
	return delegate.Task{}, fmt.Errorf("nobody asks")
}

func (q queue) Cancel(_ context.Context, _ delegate.Request, task delegate.TaskRef) error {
	delete(q.done, task.ID)
	return nil
}

func (q queue) Delegate(context.Context, delegate.Request) (delegate.Result, error) {
	return delegate.Result{}, fmt.Errorf("only called where HasTask is false")
}

// An executor whose agents work on tasks of their own implements Tasks.
func ExampleTasks() {
	agents := delegate.Composite{SDK: queue{done: map[string]any{}}}
	runner, err := graph.New(historymem.New(), graph.Options{Delegates: agents})
	if err != nil {
		log.Fatal(err)
	}
	defer runner.Close()
	doc, err := definition.Parse([]byte(reviewWorkflow))
	if err != nil {
		log.Fatal(err)
	}
	run, err := runner.Start(context.Background(), graph.StartRequest{Definition: doc, Input: map[string]any{"file": "go.mod"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Status, run.Result)
	// Output: completed go.mod was reviewed
}
