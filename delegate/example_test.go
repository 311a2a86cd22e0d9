package delegate_test

import (
	"context"
	"fmt"
	"log"

	"github.com/workflows-engine/workflows-engine/activities"
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
	runner, err := graph.New(historymem.New(), graph.Options{Delegates: activities.Composite{SDK: &agents}})
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

func (q queue) Capabilities(activities.Node) activities.Capabilities {
	return activities.Capabilities{Tasks: q}
}

func (q queue) Send(_ context.Context, req activities.Request) (activities.Task, error) {
	// The key is the same if the engine crashes and sends the task again.
	q.done[req.IdempotencyKey] = map[string]any{"verdict": fmt.Sprint(req.Input["file"], " was reviewed")}
	return activities.Task{ID: req.IdempotencyKey}, nil
}

func (q queue) Poll(_ context.Context, _ activities.Request, task activities.TaskRef) (activities.Task, error) {
	if output, ok := q.done[task.ID]; ok {
		return activities.Task{State: activities.TaskCompleted, Output: output}, nil
	}
	return activities.Task{}, nil // still at it
}

func (q queue) Answer(context.Context, activities.Request, activities.TaskRef, map[string]any) (activities.Task, error) {
	return activities.Task{}, fmt.Errorf("nobody asks")
}

func (q queue) Cancel(_ context.Context, _ activities.Request, task activities.TaskRef) error {
	delete(q.done, task.ID)
	return nil
}

func (q queue) Execute(context.Context, activities.Request) (activities.Result, error) {
	return activities.Result{}, fmt.Errorf("only called without Capabilities.Tasks")
}

// An executor whose agents work on tasks of their own has Tasks among its capabilities.
func Example_tasks() {
	agents := activities.Composite{SDK: queue{done: map[string]any{}}}
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
