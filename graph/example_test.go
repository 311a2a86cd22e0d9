package graph_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// A Runner embedded in a program, with an executor of its own.
func Example() {
	doc, err := definition.ParseYAML([]byte(`
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: greet, version: 1.0.0}
state_schema: {type: object, properties: {name: {type: string}, greeting: {type: string}}}
nodes:
  - {id: start, type: start}
  - {id: greet, type: step, config: {handler: greet}}
  - {id: end, type: end, config: {output_mapping: .greeting}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: greet}
  - {source: greet, target: end}
`))
	if err != nil {
		panic(err)
	}
	greet := activities.ExecutorFunc(func(_ context.Context, req activities.Request) (activities.Result, error) {
		name := req.State()["name"].(string)
		return activities.Result{Output: map[string]any{"greeting": "Hello, " + strings.ToUpper(name)}}, nil
	})
	runner, err := graph.New(historymem.New(), graph.Options{Activities: greet})
	if err != nil {
		panic(err)
	}
	defer func() { _ = runner.Close() }()
	run, err := runner.Start(context.Background(), graph.StartRequest{Definition: doc, Input: map[string]any{"name": "Ada"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Status, run.Result)
	// Output: completed Hello, ADA
}
