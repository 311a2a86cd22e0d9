package agent_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

const besideAStep = `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: beside, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - {id: both, type: parallel, config: {join: all, TIMEOUT branches: [{name: a, entry: refund}, {name: b, entry: other}]}}
  - {id: refund, type: agent_delegate, config: {agent_id: clerk, protocol: sdk, input_mapping: {task: "refund"}}}
  - {id: other, type: step, config: {handler: h}}
  - {id: end, type: end, config: {output_mapping: .}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: both}
  - {source: both, target: end}
  - {source: refund, target: end}
  - {source: other, target: end}
`

// TestARetryGoesOnBesideAFailure: where the neighbour of an agent has failed, or the time of their block was over, a retry has the agent go on
// where it stood, with a call under way as its onCrash says. Nothing is paid under another key.
func TestARetryGoesOnBesideAFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		timeout string // less than the 60 s that a tool has
		inCall  bool   // the call is under way when the block ends
		onCrash string
	}{
		"time over":                            {"timeout: 55s,", false, ""},
		"time over in a call that is reported": {"timeout: 55s,", true, "report"},
		"time over in a call that is repeated": {"timeout: 55s,", true, "repeat"},
		"time over in a call that is asked of": {"timeout: 55s,", true, "ask"},
		"a failure":                            {"", false, ""},
		"a failure in a call that is reported": {"", true, "report"},
		"a failure in a call that is repeated": {"", true, "repeat"},
		"a failure in a call that is asked of": {"", true, "ask"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var broken atomic.Bool
				broken.Store(true)
				tool, store := refunds(c.onCrash), historymem.New()
				tool.hang.Store(c.inCall)
				m := model(func(ctx context.Context, req chat.Request) (chat.Reply, error) {
					switch {
					case req.Messages[len(req.Messages)-1].Role != chat.Result:
						return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "refund", Arguments: "{}"}}}, nil
					case !broken.Load():
						time.Sleep(50 * time.Second) // the block has its full time again
						return chat.Reply{Text: "done"}, nil
					}
					<-ctx.Done()
					return chat.Reply{}, ctx.Err()
				})
				agents := enginetest.Must(agent.New(agent.Config{
					Models: map[string]agent.Model{"main": {Chat: m, Model: agentloop.Model{Model: "m"}}},
					Agents: map[string]agent.Agent{"clerk": {Config: agentloop.Config{Instructions: "You work."}, Tools: []agent.Toolset{tool}}},
				}))
				step := activities.ExecutorFunc(func(ctx context.Context, _ activities.Request) (activities.Result, error) {
					if broken.Load() && c.timeout == "" {
						time.Sleep(30 * time.Second)
						return activities.Result{}, &activities.Failure{Code: string(problem.LLMProviderError), Message: "refused", Retryable: activities.RetryPointless}
					}
					return activities.Result{Output: object{}}, nil
				})
				r := enginetest.Must(graph.New(store, graph.Options{Activities: step, Delegates: activities.Composite{SDK: agents}, Work: graph.WorkAll}))
				defer shut(t, r)
				doc := enginetest.Define(t, strings.Replace(besideAStep, "TIMEOUT", c.timeout, 1))
				if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: doc}); err != nil {
					t.Fatal(err)
				}
				if run := over(t, r, "r"); run.Status != machine.Failed {
					t.Fatalf("%s %s", run.Status, run.Error)
				}
				synctest.Wait()
				broken.Store(false)
				tool.hang.Store(false)
				if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: "again"}); err != nil {
					t.Fatal(err)
				}
				run := over(t, r, "again")
				_, most := tool.paid()
				again := 1
				if c.inCall && c.onCrash != "report" {
					again = 2 // under the same key
				}
				if run.Status != machine.Completed || len(tool.keys) != 1 || most != again {
					t.Errorf("%s %s: %v", run.Status, run.Error, tool.keys)
				}
				checked(t, store, "r")
				checked(t, store, "again")
			})
		})
	}
}
