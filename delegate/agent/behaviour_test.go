package agent_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestFiveTimes529: an overloaded provider is asked five times, after 1, 2, 4 and 8 seconds. Then the agent fails with what the provider
// said last, and each try is recorded.
func TestFiveTimes529(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy := chattest.Fail(529, "busy")
		busy.Always = true
		endpoint := chattest.ServeInMemory(t, busy)
		store := historymem.New()
		r := office(t, store, endpoint, newShop(), nil)
		defer shut(t, r)
		began := time.Now()
		begin(t, r, "r")
		run := end(t, r, "r")
		if run.Status != machine.Failed || run.ErrorCode != "LLM_PROVIDER_ERROR" || !strings.Contains(run.Error, "529") || !strings.Contains(run.Error, "turn 1, try 5") {
			t.Errorf("%s %s %s", run.Status, run.ErrorCode, run.Error)
		}
		if took := time.Since(began); took < 15*time.Second || took > 16*time.Second {
			t.Errorf("it took %s, want 1 + 2 + 4 + 8 seconds", took)
		}
		tries := 0
		for _, step := range stepsOf(t, store) {
			if step == "tried t1" {
				tries++
			}
		}
		if asked := len(endpoint.Asked()); asked != 5 || tries != 5 {
			t.Errorf("asked %d times, %d tries recorded", asked, tries)
		}
	})
}

// TestALongPauseNeedsNoProcess: a provider that asks for two minutes gets them. Meanwhile nothing owns the run and no goroutine waits, and
// another process asks again once they are over, not before.
func TestALongPauseNeedsNoProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		endpoint := chattest.ServeInMemory(t, chattest.Fail(http.StatusTooManyRequests, "slow down", "Retry-After", "120"), chattest.Text("Tea costs 3.50."))
		store := historymem.New()
		r := office(t, store, endpoint, newShop(), nil)
		began := time.Now()
		begin(t, r, "r")
		time.Sleep(10 * time.Second)
		run := enginetest.Must(r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"}))
		owner := enginetest.Must(store.Owner(t.Context(), "r"))
		if run.Status != machine.AwaitingTimer || owner.Process != "" {
			t.Fatalf("%s, owner %+v", run.Status, owner)
		}
		stacks := make([]byte, 1<<20)
		if text := string(stacks[:runtime.Stack(stacks, true)]); strings.Contains(text, "agent.(*attempt)") && strings.Contains(text, t.Name()) {
			for part := range strings.SplitSeq(text, "\n\n") {
				if strings.Contains(part, "agent.(*attempt)") && strings.Contains(part, "synctest bubble") && strings.Contains(part, t.Name()) {
					t.Errorf("a goroutine waits:\n%s", part)
				}
			}
		}
		shut(t, r)
		second := office(t, store, endpoint, newShop(), nil)
		defer shut(t, second)
		if run := end(t, second, "r"); run.Status != machine.Completed || run.FinalState["text"] != "Tea costs 3.50." {
			t.Errorf("%s %s %s", run.Status, run.ErrorCode, run.Error)
		}
		if took := time.Since(began); took < 2*time.Minute || took > 3*time.Minute || len(endpoint.Asked()) != 2 {
			t.Errorf("it took %s, the model was asked %d times", took, len(endpoint.Asked()))
		}
	})
}

// team is a workflow of two branches with a chief each.
const team = `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: team, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - {id: both, type: parallel, config: {join: all, branches: [{name: left, entry: one}, {name: right, entry: two}]}}
  - {id: one, type: agent_delegate, config: {agent_id: chief, protocol: sdk, input_mapping: {task: {literal: "Pay left."}}}}
  - {id: two, type: agent_delegate, config: {agent_id: chief, protocol: sdk, input_mapping: {task: {literal: "Pay right."}}}}
  - {id: end, type: end, config: {output_mapping: .}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: both}
  - {source: both, target: end}
  - {source: one, target: end}
  - {source: two, target: end}
`

// TestGatesTwoLevelsDown: in two branches at once, agents of agents of agents ask for approval. After three days a process that has neither
// agents nor tools records the answers; one that has them makes each call once.
func TestGatesTwoLevelsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, store := newTill(0), historymem.New()
		m := model(func(_ context.Context, req chat.Request) (chat.Reply, error) {
			if req.Messages[len(req.Messages)-1].Role == chat.Result {
				return chat.Reply{Text: said(req)}, nil
			}
			tool := req.Tools[0].Name // what an agent can call: the agent below, or pay
			arguments := `{"task":"Pay."}`
			if tool == "pay" {
				arguments = "{}"
			}
			return chat.Reply{Calls: []chat.Call{{ID: "a", Name: tool, Arguments: arguments}}}, nil
		})
		agents := enginetest.Must(agent.New(agent.Config{
			Models: map[string]agent.Model{"main": {Chat: m, Model: agentloop.Model{Model: "m"}}},
			Agents: map[string]agent.Agent{
				"chief": {Agents: []agent.SubAgent{{Name: "clerk"}}}, "clerk": {Agents: []agent.SubAgent{{Name: "boy"}}}, "boy": {Tools: []agent.Toolset{p}},
			},
		}))
		able := func() *graph.Runner {
			return enginetest.Must(graph.New(store, graph.Options{Delegates: activities.Composite{SDK: agents}, Work: graph.WorkAll}))
		}
		r := able()
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: enginetest.Define(t, team), Input: object{}, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		run := enginetest.Must(r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"}))
		shut(t, r)
		var questions []string
		for i := range run.Pending {
			if run.Pending[i].Kind == machine.WaitInterrupt {
				questions = append(questions, run.Pending[i].ID)
				if shown := fmt.Sprint(run.Pending[i].Show); !strings.Contains(shown, "t1.c1/t1.c1/t1.c1") || !strings.Contains(run.Pending[i].Prompt, "Agent boy wants to call pay") {
					t.Errorf("the question: %s %s", run.Pending[i].Prompt, shown)
				}
			}
		}
		if len(questions) != 2 {
			t.Fatalf("%s, questions %q", run.Status, questions)
		}
		time.Sleep(72 * time.Hour)
		bare := enginetest.Must(graph.New(store, graph.Options{Work: graph.WorkAll}))
		for _, id := range questions {
			if _, err := bare.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: id, Payload: object{"decision": "approve"}}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		if paid, _ := p.paid(); paid != 0 {
			t.Errorf("%d calls were made by a process without the tool", paid)
		}
		shut(t, bare)
		r = able()
		defer shut(t, r)
		run = end(t, r, "r")
		if paid, most := p.paid(); run.Status != machine.Completed || paid != 2 || most != 1 {
			t.Errorf("%s %s, %d calls, one %d times", run.Status, run.Error, paid, most)
		}
	})
}

// TestAChangedConfigurationChangesNoAgentAtWork: what an agent began with is recorded. Other instructions, budgets and gates hold for the next.
func TestAChangedConfigurationChangesNoAgentAtWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, store := newTill(0), historymem.New()
		var systems []string
		m := model(func(_ context.Context, req chat.Request) (chat.Reply, error) {
			systems = append(systems, strings.SplitN(req.Messages[0].Text, "\n", 2)[0])
			if len(req.Messages) > 4 {
				return chat.Reply{Text: "done"}, nil
			}
			return chat.Reply{Calls: []chat.Call{{ID: fmt.Sprint(len(req.Messages)), Name: "pay", Arguments: "{}"}}}, nil
		})
		r := workshop(t, store, m, nil, p)
		if run := work(t, r); run.Status != machine.Interrupted {
			t.Fatalf("%s %s", run.Status, run.Error)
		}
		shut(t, r)
		r = workshop(t, store, m, func(a *agent.Agent) {
			a.Instructions, a.Budgets.Turns, a.Gates = "You have changed.", 1, []agentloop.Gate{{Tools: []string{"*"}, Do: agent.Deny}}
		}, p)
		defer shut(t, r)
		if run, err := goOn(t, r); err != nil || run.Status != machine.Completed {
			t.Fatalf("%v, %s %s", err, run.Status, run.Error)
		}
		if paid, _ := p.paid(); paid != 2 || !slices.Equal(systems, []string{"You work.", "You work.", "You work."}) {
			t.Errorf("%d paid, instructions %q", paid, systems)
		}
		begin(t, r, "next")
		if run := end(t, r, "next"); run.ErrorCode != "AGENT_TURNS_EXCEEDED" || systems[3] != "You have changed." {
			t.Errorf("%s %s, instructions %q", run.Status, run.ErrorCode, systems)
		}
	})
}

// TestABudgetOfASubAgentIsTheTrees: what a sub-agent spends counts for the agent above it, whose budget ends both; a budget of its own is the
// result of its call.
func TestABudgetOfASubAgentIsTheTrees(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		above, below agentloop.Budgets
		code, says   string
	}{
		"the agent's above": {agentloop.Budgets{Tokens: 250}, agentloop.Budgets{}, "AGENT_TOKENS_EXCEEDED", ""},
		"its own":           {agentloop.Budgets{}, agentloop.Budgets{Turns: 2}, "", "AGENT_TURNS_EXCEEDED"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var looks atomic.Int64
			m := model(func(_ context.Context, req chat.Request) (chat.Reply, error) {
				reply := chat.Reply{Text: said(req), Usage: chat.Usage{Prompt: 50, Completion: 10}}
				switch {
				case req.Tools == nil || req.Tools[0].Name == "look":
					reply.Calls = []chat.Call{{ID: "a", Name: "look", Arguments: fmt.Sprintf(`{"n":%d}`, looks.Add(1))}}
				case req.Messages[len(req.Messages)-1].Role != chat.Result:
					reply.Calls = []chat.Call{{ID: "a", Name: "agent__scout", Arguments: `{"task":"Look."}`}}
				}
				return reply, nil
			})
			agents := enginetest.Must(agent.New(agent.Config{
				Models: map[string]agent.Model{"main": {Chat: m, Model: agentloop.Model{Model: "m", MaxTokens: 20}}},
				Agents: map[string]agent.Agent{
					"clerk": {Config: agentloop.Config{Budgets: c.above}, Agents: []agent.SubAgent{{Name: "scout"}}},
					"scout": {Config: agentloop.Config{Budgets: c.below}, Tools: []agent.Toolset{agent.Func("look", "", func(_ context.Context, in struct {
						N int `json:"n"`
					},
					) (int, error) {
						return in.N, nil
					})}},
				},
			}))
			r := enginetest.Must(graph.New(historymem.New(), graph.Options{Delegates: activities.Composite{SDK: agents}, Work: graph.WorkAll}))
			defer shut(t, r)
			run := work(t, r)
			if run.ErrorCode != c.code || !strings.Contains(fmt.Sprint(run.FinalState["text"]), c.says) || looks.Load() < 2 || looks.Load() > 5 {
				t.Errorf("%s: %s %s %s, %v, %d looks", name, run.Status, run.ErrorCode, run.Error, run.FinalState, looks.Load())
			}
		})
	}
}

// TestHostileEndpoint: what a model's server sends as calls leaves a recorded result each, through the very client of providers, and the
// agent goes on to its answer.
func TestHostileEndpoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hostile := []chat.Call{
			{ID: "a", Name: "price", Arguments: `{"item":`}, {ID: "a", Name: "price", Arguments: `[]`}, {ID: "a", Name: "", Arguments: "{}"},
			{ID: "", Name: "price\x00", Arguments: "{}"}, {ID: strings.Repeat("x", 5000), Name: strings.Repeat("y", 5000), Arguments: "{}"},
			{ID: "c", Name: "price", Arguments: strings.Repeat(`{"item":`, 10_000) + "1" + strings.Repeat("}", 10_000)},
			{ID: "d", Name: "price", Arguments: `{"item":"` + strings.Repeat("z", 3<<20) + `"}`}, {ID: "e", Name: "price", Arguments: `{"item":1e999}`},
			{ID: "f", Name: "agent__writer", Arguments: `{"task":""}`}, {ID: "g", Name: "ask_persn", Arguments: "{}"},
		}
		endpoint := chattest.ServeInMemory(t, chattest.Calls(hostile[:5]...), chattest.Reply{Calls: hostile[5:9], Piece: 1 << 16}, chattest.Calls(hostile[9]), chattest.Text("Still here."))
		store := historymem.New()
		r := office(t, store, endpoint, newShop(), func(a *agent.Agent) { a.Stream = true })
		defer shut(t, r)
		begin(t, r, "r")
		if run := end(t, r, "r"); run.ErrorCode != "AGENT_LOOP_DETECTED" { // ten failed calls in a row
			t.Errorf("%s %s %s", run.Status, run.ErrorCode, run.Error)
		}
		results := 0
		for _, rec := range enginetest.Must(store.Read(t.Context(), "r", 1, 0)) {
			if s, _, ok := machine.StepOf(&rec); ok && s.Kind == agentloop.StepResult {
				results++
				if s.Body["error"] == nil {
					t.Errorf("%s: %v", s.Key, s.Body)
				}
			}
		}
		if results != len(hostile) {
			t.Errorf("%d results of %d calls", results, len(hostile))
		}
	})
}
