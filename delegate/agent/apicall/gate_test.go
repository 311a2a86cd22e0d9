package apicall_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agent/apicall"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestRulesSeeThePathAlone: a rule about a path holds for all calls of that path, whatever their query is and wherever a model writes it.
func TestRulesSeeThePathAlone(t *testing.T) {
	t.Parallel()
	s := newShop(t, nil)
	endpoint := chattest.Serve(t,
		chattest.Calls(
			chattest.Call(apicall.Name, `{"service":"widgets","method":"GET","path":"/refunds"}`),
			chattest.Call(apicall.Name, `{"service":"widgets","method":"GET","path":"/refunds","query":"x=1"}`),
			chattest.Call(apicall.Name, `{"service":"widgets","method":"GET","path":"/refunds?x=1"}`),
			chattest.Call(apicall.Name, `{"service":"widgets","method":"GET","path":"/refunds?"}`),
			chattest.Call(apicall.Name, `{"service":"widgets","method":"GET","path":"/items","query":"name=%2Frefunds"}`),
			chattest.Call(apicall.Name, `{"service":"widgets","method":"GET","path":"/items","query":"name=/refunds&page=2"}`),
		),
		chattest.Text("Done."),
	)
	llm := enginetest.Must(llmcall.New(llmcall.Config{BaseURL: endpoint.URL, NoAuth: true}))
	agents := enginetest.Must(agent.New(agent.Config{
		Models: map[string]agent.Model{"main": {Chat: llm, Model: agentloop.Model{Model: "m"}}},
		Agents: map[string]agent.Agent{"clerk": {
			Config: agentloop.Config{Instructions: "You work.", Gates: []agentloop.Gate{
				{Tools: []string{apicall.Name}, When: `.arguments.path | test("^/refunds$")`, Do: "deny"},
			}},
			Tools: []agent.Toolset{tools(t, apicall.Service{BaseURL: s.URL}, nil)},
		}},
	}))
	r := enginetest.Closing(t, enginetest.Must(graph.New(historymem.New(), graph.Options{Delegates: activities.Composite{SDK: agents}})))
	run, err := r.Start(t.Context(), graph.StartRequest{Definition: enginetest.Define(t, `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: work, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - {id: work, type: agent_delegate, config: {agent_id: clerk, protocol: sdk, input_mapping: {task: Work}}}
  - {id: end, type: end}
edges:
  - {source: __start__, target: start}
  - {source: start, target: work}
  - {source: work, target: end}
`), Input: object{}})
	if err != nil || run.Status != machine.Completed {
		t.Fatalf("%v %+v", err, run)
	}
	if s.count() != 1 {
		t.Errorf("%d requests were made, want the one about items", s.count())
	}
	if got, _ := s.last(); got == nil || got.URL.String() != "/items?name=/refunds&page=2" {
		t.Errorf("sent %v", got)
	}
}
