package llmagent_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agent/llmagent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

type object = map[string]any

// provider is a model that keeps its requests.
type provider struct {
	mu    sync.Mutex
	asked []chat.Request
	reply func(n int, req chat.Request) (chat.Reply, error)
}

func (p *provider) Chat(_ context.Context, req chat.Request) (chat.Reply, error) {
	p.mu.Lock()
	p.asked = append(p.asked, req)
	n := len(p.asked)
	p.mu.Unlock()
	return p.reply(n, req)
}

func (p *provider) requests() []chat.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]chat.Request(nil), p.asked...)
}

// engine returns an engine with the agent clerk, and with models for other llm_call nodes.
func engine(t testing.TB, store history.Store, p *provider, change func(*agent.Agent)) *graph.Runner {
	t.Helper()
	clerk := agent.Agent{
		Config: agentloop.Config{Instructions: "You are a clerk."}, Models: []string{"main", "spare"},
		Tools: []agent.Toolset{agent.Func("pay", "Pays.", func(context.Context, struct{}) (object, error) { return object{"paid": 5}, nil }, agent.WithGate(agent.Ask))},
	}
	if change != nil {
		change(&clerk)
	}
	agents, err := agent.New(agent.Config{
		Models: map[string]agent.Model{
			"main":  {Chat: p, Model: agentloop.Model{Model: "big-1", Price: &agentloop.Price{Input: 1, Output: 1}}},
			"spare": {Chat: p, Model: agentloop.Model{Model: "small-1", Price: &agentloop.Price{Input: 1, Output: 1}}},
		},
		Agents: map[string]agent.Agent{"clerk": clerk},
	})
	if err != nil {
		t.Fatal(err)
	}
	models := activities.ExecutorFunc(func(context.Context, activities.Request) (activities.Result, error) {
		return activities.Result{Output: object{"text": "no agent"}}, nil
	})
	return enginetest.Must(graph.New(store, graph.Options{Activities: activities.Composite{LLMCall: llmagent.New(agents, models, nil)}, Work: graph.WorkAll}))
}

// asking returns a workflow with one llm_call and the fields of its config.
func asking(config string) string {
	return `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: ask, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - id: ask
    type: llm_call
    metadata: {prompt_templates: true}
    config: {` + config + `}
  - {id: end, type: end, config: {output_mapping: .}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: ask}
  - {source: ask, target: end}
`
}

func play(t testing.TB, r *graph.Runner, config string) *view.Run {
	t.Helper()
	run, err := r.Start(t.Context(), graph.StartRequest{
		ExecutionID: "r", Definition: enginetest.Define(t, asking(config)), Input: object{"item": "tea"}, Wait: graph.Wait{Limit: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func shut(t testing.TB, r *graph.Runner) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestTheNodeStandsOverTheAgent: prompts, model, sampling and schema are the node's if it has them, else the agent's.
func TestTheNodeStandsOverTheAgent(t *testing.T) {
	t.Parallel()
	number := func(v float64) *float64 { return &v }
	whole := func(v int) *int { return &v }
	for name, c := range map[string]struct {
		config string
		change func(*agent.Agent)
		reply  chat.Reply
		want   chat.Request
		system string
		task   string
		output object
	}{
		"nothing": {
			config: `agent: clerk`, reply: chat.Reply{Text: "3.50"}, want: chat.Request{Model: "big-1", MaxTokens: 8192},
			system: "You are a clerk.", task: `{"item":"tea"}`, output: object{"item": "tea", "text": "3.50"},
		},
		"everything": {
			config: `agent: clerk, model: spare, system_prompt: "Be short.", user_prompt: "Price of ${ .item }?", temperature: 0, top_p: 0.5, max_tokens: 300, seed: 7, stop: [END], stream: true,
      output_schema: {type: object, required: [price], properties: {price: {type: number}}}`,
			reply: chat.Reply{Text: `{"price":3.5}`}, want: chat.Request{Model: "small-1", MaxTokens: 300, Temperature: number(0), TopP: number(0.5), Seed: whole(7), Stop: []string{"END"}, Stream: true},
			system: "Be short.", task: "Price of tea?", output: object{"item": "tea", "price": 3.5},
		},
		"a model by the provider's name": {
			config: `agent: clerk, model: small-1, prompt: "Hello."`, reply: chat.Reply{Text: "x"}, want: chat.Request{Model: "small-1", MaxTokens: 8192},
			system: "You are a clerk.", task: "Hello.", output: object{"item": "tea", "text": "x"},
		},
		"a model that is not configured": {
			config: `agent: clerk, model: other-1, prompt: "Hello."`, reply: chat.Reply{Text: "x"}, want: chat.Request{Model: "other-1", MaxTokens: 8192},
			system: "You are a clerk.", task: "Hello.", output: object{"item": "tea", "text": "x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &provider{reply: func(int, chat.Request) (chat.Reply, error) { return c.reply, nil }}
				r := engine(t, historymem.New(), p, c.change)
				defer shut(t, r)
				run := play(t, r, c.config)
				if run.Status != machine.Completed || !reflect.DeepEqual(run.FinalState, c.output) {
					t.Fatalf("%s %s %s, %v", run.Status, run.ErrorCode, run.Error, run.FinalState)
				}
				got := p.requests()[0]
				if system, task := got.Messages[0].Text, got.Messages[1].Text; !strings.HasPrefix(system, c.system) || task != c.task {
					t.Errorf("system %q, task %q", system, task)
				}
				if len(got.Tools) != 1 || got.Tools[0].Name != "pay" {
					t.Errorf("tools %v", got.Tools)
				}
				got.Messages, got.Tools, got.Key, got.OnText = nil, nil, "", nil
				if !reflect.DeepEqual(got, c.want) {
					t.Errorf("asked %+v, want %+v", got, c.want)
				}
			})
		})
	}
}

// TestAnAgentOfANodeIsAnAgent: its gate asks a person, it waits, it continues in another process with another configuration, and its answer is
// repaired by the rules of agents.
func TestAnAgentOfANodeIsAnAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &provider{reply: func(n int, req chat.Request) (chat.Reply, error) {
			switch n {
			case 1:
				return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "pay", Arguments: "{}"}}}, nil
			case 2:
				return chat.Reply{}, &activities.Failure{Code: "LLM_PROVIDER_ERROR", Message: "status 429", RetryAfter: 2 * time.Minute}
			case 3:
				return chat.Reply{Text: "It was paid."}, nil
			}
			return chat.Reply{Text: `{"paid":5}`}, nil
		}}
		store := historymem.New()
		config := `agent: clerk, system_prompt: "Pay.", prompt: "Pay 5.", output_schema: {type: object, required: [paid]}`
		r := engine(t, store, p, nil)
		run := play(t, r, config)
		if run.Status != machine.Interrupted || !strings.Contains(run.Pending[0].Prompt, "pay") {
			t.Fatalf("%s, %+v", run.Status, run.Pending)
		}
		question := run.Pending[0].ID
		shut(t, r)
		time.Sleep(72 * time.Hour)
		r = engine(t, store, p, func(a *agent.Agent) { a.Instructions, a.Budgets.Turns = "You have changed.", 1 })
		run, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: question, Payload: object{"decision": "approve"}})
		if err == nil && run.Status == machine.Running {
			time.Sleep(time.Second)
			run, err = r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"})
		}
		if err != nil || run.Status != machine.AwaitingTimer {
			t.Fatalf("%v, %+v", err, run)
		}
		shut(t, r)
		r = engine(t, store, p, nil)
		defer shut(t, r)
		for range 5 {
			if run, err = r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &graph.Wait{Limit: time.Hour}}); err != nil || run.Status.Terminal() {
				break
			}
		}
		if err != nil || run.Status != machine.Completed || run.FinalState["paid"] != 5.0 {
			t.Fatalf("%v, %s %s %s, %v", err, run.Status, run.ErrorCode, run.Error, run.FinalState)
		}
		asked := p.requests()
		if len(asked) != 4 || !strings.HasPrefix(asked[3].Messages[0].Text, "Pay.") || asked[3].Schema == nil || asked[3].Tools != nil {
			t.Errorf("asked %d times, the repair with schema %v and tools %v", len(asked), asked[3].Schema, asked[3].Tools)
		}
	})
}

// TestNodesWithoutAnAgent: models answer them; a host gets all nodes, also those with agents.
func TestNodesWithoutAnAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &provider{reply: func(int, chat.Request) (chat.Reply, error) { return chat.Reply{}, errors.New("nobody asks") }}
		r := engine(t, historymem.New(), p, nil)
		defer shut(t, r)
		if run := play(t, r, `model: m, prompt: "Hello."`); run.Status != machine.Completed || run.FinalState["text"] != "no agent" {
			t.Errorf("%s, %v", run.Status, run.FinalState)
		}
		run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "h", Definition: enginetest.Define(t, asking(`agent: clerk, prompt: "Hello."`)), Mode: machine.HostMediated, Input: object{}})
		if err != nil || len(run.Pending) != 1 || !run.Pending[0].Host || run.Pending[0].Config["agent"] != "clerk" {
			t.Fatalf("%v, %+v", err, run)
		}
		if len(p.requests()) > 0 {
			t.Error("the agent's model was asked")
		}
	})
}

// TestNodesThatCannotBe: each invalid node fails with its code before a model is asked.
func TestNodesThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ config, code, says string }{
		"no such agent":      {`agent: clark`, "DELEGATE_AGENT_NOT_FOUND", `did you mean "clerk"?`},
		"no name":            {`agent: 5`, "LLM_CONFIG_INVALID", "agent"},
		"an empty prompt":    {`agent: clerk, prompt: " "`, "LLM_CONFIG_INVALID", "empty"},
		"a bad template":     {`agent: clerk, prompt: "${ error(1) }"`, "LLM_CONFIG_INVALID", "prompt"},
		"a bad temperature":  {`agent: clerk, temperature: -1`, "LLM_CONFIG_INVALID", "temperature"},
		"a price is missing": {`agent: clerk, model: other-1`, "AGENT_CONFIG_INVALID", "priceUsdPerMTok"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &provider{reply: func(int, chat.Request) (chat.Reply, error) { return chat.Reply{}, errors.New("nobody asks") }}
				r := engine(t, historymem.New(), p, func(a *agent.Agent) { a.Budgets.CostMicros = 1000 })
				defer shut(t, r)
				run := play(t, r, c.config)
				if run.Status != machine.Failed || run.ErrorCode != c.code || !strings.Contains(run.Error, c.says) || len(p.requests()) > 0 {
					t.Errorf("%s %s %s", run.Status, run.ErrorCode, run.Error)
				}
			})
		})
	}
}

// TestAModelAloneIsNotAnAgent: an executor of models rejects a node that names an agent, and a run that requires capability does not start
// without the agent.
func TestAModelAloneIsNotAnAgent(t *testing.T) {
	t.Parallel()
	llm := enginetest.Must(llmcall.New(llmcall.Config{NoAuth: true, BaseURL: "http://models.invalid"}))
	_, err := llm.Execute(t.Context(), activities.Request{NodeID: "ask", NodeType: "llm_call", Config: object{"agent": "clerk", "model": "m", "prompt": "p"}})
	if failure, ok := errors.AsType[*activities.Failure](err); !ok || failure.Code != "DELEGATE_AGENT_NOT_FOUND" {
		t.Errorf("%v", err)
	}
	for name, executor := range map[string]activities.Executor{"models": llm, "agents": llmagent.New(enginetest.Must(agent.New(agent.Config{})), llm, nil)} {
		r := enginetest.Must(graph.New(historymem.New(), graph.Options{Activities: activities.Composite{LLMCall: executor}}))
		_, err := r.Start(t.Context(), graph.StartRequest{Definition: enginetest.Define(t, asking(`agent: clerk, prompt: "Hello."`)), RequireCapable: true, Input: object{}})
		if err == nil || !strings.Contains(fmt.Sprint(err), `agent "clerk"`) {
			t.Errorf("%s: %v", name, err)
		}
		shut(t, r)
	}
}

// TestTargets: an executor of models alone performs nodes without an agent; one of agents lists them.
func TestTargets(t *testing.T) {
	t.Parallel()
	llm := enginetest.Must(llmcall.New(llmcall.Config{NoAuth: true, BaseURL: "http://models.invalid"}))
	clerk := agent.Agent{Config: agentloop.Config{Instructions: "You are a clerk."}, Models: []string{"main"}}
	agents := enginetest.Must(agent.New(agent.Config{
		Models: map[string]agent.Model{"main": {Chat: llm, Model: agentloop.Model{Model: "big-1"}}},
		Agents: map[string]agent.Agent{"clerk": clerk, "auditor": clerk},
	}))
	for name, c := range map[string]struct {
		executor activities.Executor
		want     []string
	}{
		"models":            {llm, []string{""}},
		"agents":            {llmagent.New(agents, nil, nil), []string{"auditor", "clerk"}},
		"both":              {llmagent.New(agents, llm, nil), []string{"", "auditor", "clerk"}},
		"models, no agents": {llmagent.New(nil, llm, nil), []string{""}},
	} {
		can := activities.CapabilitiesOf(activities.Composite{LLMCall: c.executor}, activities.Node{Type: "llm_call"})
		if got := can.Targets(); !slices.Equal(got, c.want) {
			t.Errorf("%s: targets %q, want %q", name, got, c.want)
		}
	}
	can := agents.Capabilities(activities.Node{Type: "agent_delegate", Protocol: "sdk"})
	if got := can.Targets(); !slices.Equal(got, []string{"auditor", "clerk"}) {
		t.Errorf("sdk: targets %q", got)
	}
}
