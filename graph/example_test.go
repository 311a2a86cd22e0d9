package graph_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

const greetWorkflow = `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: greet, version: 1.0.0}
state_schema: {type: object, properties: {name: {type: string}, greeting: {type: string}}}
nodes:
  - {id: start, type: start}
  - {id: greet, type: step, config: {handler: "urn:example:greet"}}
  - {id: end, type: end, config: {output_mapping: .greeting}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: greet}
  - {source: greet, target: end}
`

// A Runner embedded in a program, with a step handler of its own. A program that is to survive its end opens a store of
// package historysql instead.
func Example() {
	type Person struct{ Name string }
	type Greeting struct {
		Greeting string `json:"greeting"`
	}
	steps := activities.NewStepRegistry()
	check(activities.RegisterStep(steps, "urn:example:greet", func(_ context.Context, call activities.Call[Person]) (Greeting, error) {
		return Greeting{"Hello, " + call.Input.Name}, nil
	}))
	runner, err := graph.New(historymem.New(), graph.Options{Activities: activities.Composite{Step: steps}})
	check(err)
	defer runner.Close()
	doc, err := definition.ParseYAML([]byte(greetWorkflow))
	check(err)
	run, err := runner.Start(context.Background(), graph.StartRequest{Definition: doc, Input: map[string]any{"name": "Ada"}})
	check(err)
	fmt.Println(run.Status, run.Result)
	// Output: completed Hello, Ada
}

const summaryWorkflow = `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: summary, version: 1.0.0}
state_schema: {type: object, properties: {text: {type: string}, summary: {type: string}}}
nodes:
  - {id: start, type: start}
  - {id: summarize, type: llm_call, config: {model: my-own}, retry: {max_attempts: 2}}
  - {id: end, type: end, config: {output_mapping: .summary}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: summarize}
  - {source: summarize, target: end}
`

// firstWords performs llm_call nodes without asking anybody. Anything that has an Execute method can stand here: a client
// for another API, a queue, a cache in front of another executor.
type firstWords struct{ n int }

func (f firstWords) Execute(_ context.Context, req activities.Request) (activities.Result, error) {
	if req.Attempt == 1 {
		// The code stands in the history, and the node's retry policy may name it.
		return activities.Result{}, &activities.Failure{Code: "MODEL_BUSY", Message: "try again", Retryable: activities.RetrySensible}
	}
	words := strings.Fields(req.State()["text"].(string))
	return activities.Result{
		Output: map[string]any{"summary": strings.Join(words[:min(f.n, len(words))], " ")},
		Usage:  map[string]any{"model": req.Config["model"], "prompt_tokens": len(words), "completion_tokens": f.n},
	}, nil
}

// An executor of one's own performs a type of node. What it returns as usage stands in the history beside the output.
func ExampleNew_executor() {
	runner, err := graph.New(historymem.New(), graph.Options{Activities: activities.Composite{LLMCall: firstWords{3}}})
	check(err)
	defer runner.Close()
	doc, err := definition.ParseYAML([]byte(summaryWorkflow))
	check(err)
	run, err := runner.Start(context.Background(), graph.StartRequest{Definition: doc, Input: map[string]any{"text": "It works and it is fast"}})
	check(err)
	fmt.Println(run.Status, run.Result)
	records, err := runner.History(context.Background(), graph.HistoryRequest{ExecutionID: run.ExecutionID})
	check(err)
	for _, r := range records {
		switch p := r.Payload; r.Name {
		case "ActivityFailed":
			fmt.Println("attempt", p.Attempt, "failed with", p.Code)
		case "ActivityCompleted":
			fmt.Println("tokens", p.Usage["prompt_tokens"], "and", p.Usage["completion_tokens"])
		}
	}
	// Output:
	// completed It works and
	// attempt 1 failed with MODEL_BUSY
	// tokens 6 and 3
}

const reviewWorkflow = `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: review, version: 1.0.0}
state_schema: {type: object, properties: {change: {type: string}, verdict: {type: string}}}
nodes:
  - {id: start, type: start}
  - id: review
    type: agent_delegate
    config: {agent_id: reviewer, protocol: sdk, input_mapping: {patch: {jq: .change}}}
  - {id: end, type: end, config: {output_mapping: .verdict}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: review}
  - {source: review, target: end}
`

// An agent that is a part of the program: agent_delegate nodes of protocol sdk hand their input to it.
func ExampleNew_delegate() {
	reviewer := activities.ExecutorFunc(func(_ context.Context, req activities.Request) (activities.Result, error) {
		if req.AgentID != "reviewer" {
			return activities.Result{}, &activities.Failure{Code: "DELEGATE_AGENT_NOT_FOUND", Message: "only the reviewer is here"}
		}
		verdict := fmt.Sprintf("%q looks good", req.Input["patch"])
		return activities.Result{Output: map[string]any{"verdict": verdict}, ExternalTaskID: "review-1"}, nil
	})
	runner, err := graph.New(historymem.New(), graph.Options{Delegates: activities.Composite{SDK: reviewer}})
	check(err)
	defer runner.Close()
	doc, err := definition.ParseYAML([]byte(reviewWorkflow))
	check(err)
	run, err := runner.Start(context.Background(), graph.StartRequest{Definition: doc, Input: map[string]any{"change": "+1 -1"}})
	check(err)
	fmt.Println(run.Status, run.Result)
	// Output: completed "+1 -1" looks good
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

const extractWorkflow = `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: extract, version: 1.0.0}
state_schema: {type: object, properties: {total: {type: number}}}
nodes:
  - {id: start, type: start}
  - {id: extract, type: llm_call, config: {model: my-own}}
  - {id: end, type: end, config: {output_mapping: .total}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: extract}
  - {source: extract, target: end}
`

// An executor that can put a failed attempt right. What it gives for that is recorded with the failure, and the engine
// hands it to one more attempt, which another process may perform.
func ExampleNew_repair() {
	model := activities.ExecutorFunc(func(_ context.Context, req activities.Request) (activities.Result, error) {
		if answer, ok := req.Repair["answer"].(string); ok {
			fmt.Printf("attempt %d: asked again about %q\n", req.Attempt, answer)
			return activities.Result{Output: map[string]any{"total": 42}}, nil
		}
		return activities.Result{}, &activities.Failure{
			Code: "NOT_A_NUMBER", Message: "the answer holds no number",
			Repair: map[string]any{"answer": "forty-two"},
		}
	})
	runner, err := graph.New(historymem.New(), graph.Options{Activities: activities.Composite{LLMCall: model}})
	check(err)
	defer runner.Close()
	doc, err := definition.ParseYAML([]byte(extractWorkflow))
	check(err)
	run, err := runner.Start(context.Background(), graph.StartRequest{Definition: doc})
	check(err)
	fmt.Println(run.Status, run.Result)
	// Output:
	// attempt 2: asked again about "forty-two"
	// completed 42
}
