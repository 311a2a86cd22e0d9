package graphtest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/graphtest"
)

// must is for examples, which have no *testing.T: in a test, graphtest.Run takes it.
func must(outcome *graphtest.Outcome, err error) *graphtest.Outcome {
	if err != nil {
		panic(err)
	}
	return outcome
}

const refund = `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: refund, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: begin, type: start}
  - {id: approve, type: interrupt, config: {prompt: "Refund it?", resume_schema: {type: object, required: [yes]}}}
  - {id: route, type: switch, config: {cases: [{when: ".yes", target: pay}], default: finish}}
  - {id: pay, type: tool_call, config: {server: bank, tool: pay}, retry: {max_attempts: 3, initial_interval: 10s}}
  - {id: finish, type: end, config: {output_mapping: "{paid: (.receipt != null)}"}}
edges:
  - {source: __start__, target: begin}
  - {source: begin, target: approve}
  - {source: approve, target: route}
  - {source: pay, target: finish}
`

// A person answers after two days, and the bank works at the second attempt.
func Example() {
	doc, err := definition.ParseYAML([]byte(refund))
	if err != nil {
		panic(err)
	}
	run := must(graphtest.Simulate(doc, graphtest.Scenario{
		Answers: map[string]graphtest.Answer{"approve": graphtest.ReplyAfter(48*time.Hour, map[string]any{"yes": true})},
		Stubs: map[string]graphtest.Stub{
			"pay": graphtest.Attempts(graphtest.Fail("BUSY", "try later"), graphtest.Output(map[string]any{"receipt": "R-1"})),
		},
	}))
	fmt.Println(run.Status, run.Result, run.Path)
	fmt.Println("after", run.Elapsed)
	// Output:
	// completed map[paid:true] [begin approve route pay finish]
	// after 48h0m10s
}

// A stub is a function: it sees what the node sees. An executor of a program can be called from it.
func ExampleStub() {
	doc, err := definition.ParseYAML([]byte(refund))
	if err != nil {
		panic(err)
	}
	bank := activities.ExecutorFunc(func(_ context.Context, req activities.Request) (activities.Result, error) {
		return activities.Result{Output: map[string]any{"receipt": req.NodeID}}, nil
	})
	run := must(graphtest.Simulate(doc, graphtest.Scenario{
		Answers: map[string]graphtest.Answer{"approve": graphtest.Reply(map[string]any{"yes": true})},
		Stubs: map[string]graphtest.Stub{"pay": func(c graphtest.Call) graphtest.Result {
			fmt.Println(c.Type, c.Config["tool"], c.State["yes"])
			result, err := bank.Execute(context.Background(), activities.Request{NodeID: c.Node, NodeType: c.Type, Config: c.Config})
			return graphtest.Result{Output: result.Output, Err: err}
		}},
	}))
	fmt.Println(run.State["receipt"])
	// Output:
	// tool_call pay true
	// pay
}

// Several runs together: what did no test go through?
func ExampleCoverage() {
	doc, err := definition.ParseYAML([]byte(refund))
	if err != nil {
		panic(err)
	}
	var all graphtest.Coverage
	for _, yes := range []bool{false} {
		run := must(graphtest.Simulate(doc, graphtest.Scenario{
			Answers: map[string]graphtest.Answer{"approve": graphtest.Reply(map[string]any{"yes": yes})},
		}))
		all.Add(run.Coverage)
	}
	for _, d := range all {
		fmt.Println(d.Name, "nodes:", d.Unvisited())
		for _, e := range d.Untaken() {
			fmt.Println(e.From, "→", e.To)
		}
	}
	// Output:
	// refund nodes: [pay]
	// route → pay
	// pay → finish
}
