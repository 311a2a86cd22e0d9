package agent_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agent/llmagent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// breakdown is a model that calls pay first. While it is down, it fails once it has a result.
type breakdown struct {
	down  atomic.Bool
	asked atomic.Int64
}

func (o *breakdown) Chat(_ context.Context, req chat.Request) (chat.Reply, error) {
	o.asked.Add(1)
	if req.Messages[len(req.Messages)-1].Role != chat.Result {
		return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "pay", Arguments: `{"to":"Ann"}`}}}, nil
	}
	if o.down.Load() {
		return chat.Reply{}, activities.Fail(problem.LLMProviderError, "the provider is down")
	}
	return chat.Reply{Text: said(req)}, nil
}

func brokenDown() *breakdown {
	o := &breakdown{}
	o.down.Store(true)
	return o
}

// TestARetryGoesOnWhereTheAgentStood fails the provider after a payment: the retry asks the model again, with the result that it had, and pays
// nothing again.
func TestARetryGoesOnWhereTheAgentStood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, store, m := newTill(0), historymem.New(), brokenDown()
		r := workshop(t, store, m, nil, p)
		defer func() { shut(t, r) }()
		begin(t, r, "r")
		run := end(t, r, "r")
		if run.Status != machine.Failed || run.ErrorCode != "LLM_PROVIDER_ERROR" {
			t.Fatalf("%s %s", run.Status, run.Error)
		}
		if stood := enginetest.Must(r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"})).GoesOn.String(); stood != "continues after t1.c1; 1 call is not repeated" {
			t.Errorf("the status says %q", stood)
		}
		// It fails in the retry too, and in the retry of that one.
		for _, id := range []string{"r2", "r3"} {
			if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: run.ExecutionID, NewExecutionID: id}); err != nil {
				t.Fatal(err)
			}
			if run = end(t, r, id); run.Status != machine.Failed {
				t.Fatalf("%s %s", run.Status, run.Error)
			}
		}
		m.down.Store(false)
		before := m.asked.Load()
		if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r3", NewExecutionID: "r4"}); err != nil {
			t.Fatal(err)
		}
		run = end(t, r, "r4")
		if n, most := p.paid(); run.Status != machine.Completed || n != 1 || most != 1 || m.asked.Load() != before+1 {
			t.Errorf("%s %s: paid %d times, asked %d times", run.Status, run.Error, n, m.asked.Load()-before)
		}
		if want := "result t1.c1"; !slices.Contains(stepsIn(t, store, "r4"), want) {
			t.Errorf("%q without %s", stepsIn(t, store, "r4"), want)
		}
		checked(t, store, "r4")
	})
}

func stepsIn(t testing.TB, store *historymem.Store, id string) []string {
	t.Helper()
	var kinds []string
	for _, rec := range enginetest.Must(store.Read(t.Context(), id, 1, 0)) {
		if s, n, ok := machine.StepOf(&rec); ok {
			kinds = append(kinds, s.Kind+" "+s.Key)
			if n != len(kinds) {
				t.Errorf("run %s: step %d is counted as %d", id, len(kinds), n)
			}
		}
	}
	return kinds
}

// checked verifies a run with the steps of its agents.
func checked(t testing.TB, store *historymem.Store, id string) {
	t.Helper()
	r := enginetest.Must(graph.New(store, graph.Options{CheckSteps: agent.CheckSteps}))
	defer shut(t, r)
	_, err := r.Verify(t.Context(), id, false, func(f history.Finding) { t.Errorf("%+v", f) })
	if err != nil {
		t.Error(err)
	}
}

// played is what a model says.
type played func(context.Context) (chat.Reply, error)

// told is a model that plays replies in order, whoever asks.
type told struct {
	mu      sync.Mutex
	replies []played
	asked   []chat.Request
}

func (m *told) Chat(ctx context.Context, req chat.Request) (chat.Reply, error) {
	m.mu.Lock()
	m.asked = append(m.asked, req)
	next := played(func(context.Context) (chat.Reply, error) {
		return chat.Reply{}, activities.Fail(problem.LLMProviderError, "nothing is left to say")
	})
	if len(m.replies) > 0 {
		next = m.replies[0]
		m.replies = m.replies[1:]
	}
	m.mu.Unlock()
	return next(ctx)
}

func calls(names ...string) played {
	return func(context.Context) (chat.Reply, error) {
		r := chat.Reply{}
		for i, name := range names {
			name, arguments, _ := strings.Cut(name, " ")
			r.Calls = append(r.Calls, chat.Call{ID: string(rune('a' + i)), Name: name, Arguments: cmp.Or(arguments, "{}")})
		}
		return r, nil
	}
}

// dearly is a reply to a long conversation.
func dearly(p played) played {
	return func(ctx context.Context) (chat.Reply, error) {
		r, err := p(ctx)
		r.Usage = chat.Usage{Prompt: 4000, Completion: 10}
		return r, err
	}
}

func says(text string) played {
	return func(context.Context) (chat.Reply, error) { return chat.Reply{Text: text}, nil }
}

func down(n int) (all []played) {
	for range n {
		all = append(all, func(context.Context) (chat.Reply, error) {
			return chat.Reply{}, activities.Fail(problem.LLMProviderError, "the provider is down")
		})
	}
	return all
}

// counted is a tool that does more than read. It counts what it is called with, by key.
type counted struct {
	till
	name, onCrash string
	hang          atomic.Bool
}

func (c *counted) Tools(context.Context) ([]agent.Tool, error) {
	return []agent.Tool{{Name: c.name, Parameters: object{"type": "object"}, OnCrash: c.onCrash}}, nil
}

func (c *counted) Call(ctx context.Context, call agent.Call) (any, error) {
	if c.hang.Load() {
		c.mu.Lock()
		c.keys[call.Key]++
		c.mu.Unlock()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return c.till.Call(ctx, call)
}

func refunds(onCrash string) *counted {
	return &counted{till: till{keys: map[string]int{}}, name: "refund", onCrash: onCrash}
}

// TestWhatARetryContinues: whatever the failure, a call with a result is never made again, and one that may have been begun has its first key.
func TestWhatARetryContinues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replies, again []played
		change         func(*agent.Agent)
		onCrash        string
		hangs          bool
		code           string
		// keys are those of the calls of refund, and how often each was called.
		keys map[string]int
		text string
		// last is in the newest message of the first request of the retry.
		last string
	}{
		"the provider is down": {
			replies: append([]played{calls("refund")}, down(5)...), again: []played{says("done")},
			code: "LLM_PROVIDER_ERROR", keys: map[string]int{"t1.c1": 1}, text: "done",
		},
		"an answer that breaks the schema": {
			replies: []played{calls("refund"), says("no JSON"), says("none either")},
			again:   []played{says(`{"ok":true}`)},
			change: func(a *agent.Agent) {
				a.Output = &agentloop.Output{Schema: object{"type": "object", "required": []any{"ok"}}, Repairs: 1}
			},
			code: "AGENT_OUTPUT_PARSE", keys: map[string]int{"t1.c1": 1}, last: "Your last answer did not count",
		},
		"the same call again and again": {
			replies: []played{calls("refund"), calls("look"), calls("look")}, again: []played{says("done")},
			change: func(a *agent.Agent) { a.Repeats = agentloop.Repeats{Warn: 1, Stop: 2} },
			code:   "AGENT_LOOP_DETECTED", keys: map[string]int{"t1.c1": 1}, text: "done", last: "Your last answer did not count",
		},
		"the time of the node is over, repeat": {
			replies: []played{calls("refund")}, again: []played{says("done")},
			hangs: true, onCrash: agent.Repeat, code: "TIMEOUT", keys: map[string]int{"t1.c1": 2}, text: "done",
		},
		"the time of the node is over, report": {
			replies: []played{calls("refund")}, again: []played{says("done")},
			hangs: true, onCrash: agent.Report, code: "TIMEOUT", keys: map[string]int{"t1.c1": 1}, text: "done", last: "TOOL_OUTCOME_UNKNOWN",
		},
		"a sub-agent has refunded": {
			replies: append([]played{calls(`agent__helper {"task":"refund"}`), calls("refund"), says("refunded")}, down(5)...),
			again:   []played{says("done")}, code: "LLM_PROVIDER_ERROR", keys: map[string]int{"t1.c1/t1.c1": 1}, text: "done",
		},
		"the time is over while a sub-agent works": {
			replies: []played{calls(`agent__helper {"task":"refund"}`), calls("refund"), func(ctx context.Context) (chat.Reply, error) {
				<-ctx.Done()
				return chat.Reply{}, ctx.Err()
			}},
			again: []played{says("refunded"), says("done")}, code: "TIMEOUT", keys: map[string]int{"t1.c1/t1.c1": 1}, text: "done",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tool, store, m := refunds(c.onCrash), historymem.New(), &told{replies: c.replies}
				tool.hang.Store(c.hangs)
				look := agent.Func("look", "", func(context.Context, struct{}) (string, error) { return "nothing", nil })
				clerk := agent.Agent{Config: agentloop.Config{Instructions: "You work.", TurnTimeoutMs: 10 * 3600_000, ToolTimeoutMs: 10 * 3600_000, Budgets: agentloop.Budgets{WorkMs: 20 * 3600_000}}, Tools: []agent.Toolset{tool, look}, Agents: []agent.SubAgent{{Name: "helper"}}}
				helper := clerk
				helper.Agents = nil
				if c.change != nil {
					c.change(&clerk)
				}
				r := shopOf(t, store, agent.Config{Models: map[string]agent.Model{"main": {Chat: m, Model: agentloop.Model{Model: "m"}}}, Agents: map[string]agent.Agent{"clerk": clerk, "helper": helper}})
				defer shut(t, r)
				doc := enginetest.Define(t, strings.Replace(researched, "type: agent_delegate,", "type: agent_delegate, timeout: 2h,", 1))
				if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: doc, Input: object{"task": "Work."}}); err != nil {
					t.Fatal(err)
				}
				if run := end(t, r, "r"); run.Status != machine.Failed || run.ErrorCode != c.code {
					t.Fatalf("%s %s: %s", run.Status, run.ErrorCode, run.Error)
				}
				tool.hang.Store(false)
				m.mu.Lock()
				m.replies, m.asked = c.again, nil
				m.mu.Unlock()
				if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: "again"}); err != nil {
					t.Fatal(err)
				}
				run := end(t, r, "again")
				if run.Status != machine.Completed || c.text != "" && run.FinalState["text"] != c.text {
					t.Errorf("%s %s %v", run.Status, run.Error, run.FinalState)
				}
				want := map[string]int{}
				for key, n := range c.keys {
					want["r:research#1.1/"+key] = n
				}
				if !maps.Equal(tool.keys, want) {
					t.Errorf("called %v, want %v", tool.keys, want)
				}
				if len(m.asked) != len(c.again) {
					t.Errorf("the model was asked %d times, want %d", len(m.asked), len(c.again))
				}
				if len(m.asked) > 0 && !strings.Contains(m.asked[0].Messages[len(m.asked[0].Messages)-1].Text, c.last) {
					t.Errorf("the model was told %q", m.asked[0].Messages[len(m.asked[0].Messages)-1].Text)
				}
				stepsIn(t, store, "again")
				checked(t, store, "again")
			})
		})
	}
}

// TestARetryAnew is refused where it would pay again, with the call and its key, unless that is allowed. A correction begins anew, too, and so
// does a fork that names the node.
func TestARetryAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tool, store, m := refunds(""), historymem.New(), &told{replies: append([]played{calls(`refund {"to":"Ann"}`)}, down(5)...)}
		r := workshop(t, store, m, nil, tool)
		defer shut(t, r)
		begin(t, r, "r")
		end(t, r, "r")
		before := enginetest.Must(store.List(t.Context(), history.ListQuery{}))
		for _, req := range []graph.ForkRequest{{Anew: true}, {Correction: object{"task": "Work better."}}, {Definition: enginetest.Define(t, researched)}, {BeforeNode: "research"}} {
			req.ExecutionID = "r"
			_, err := r.Fork(t.Context(), req)
			if !errors.Is(err, problem.RetryRepeatsEffects) || !strings.Contains(err.Error(), `refund {"to":"Ann"} (key r:research#1.1/t1.c1)`) {
				t.Errorf("%+v: %v", req, err)
			}
		}
		if after := enginetest.Must(store.List(t.Context(), history.ListQuery{})); len(after.Executions) != len(before.Executions) {
			t.Error("a refused retry has begun a run")
		}
		m.mu.Lock()
		m.replies = []played{calls(`refund {"to":"Ann"}`), says("done")}
		m.mu.Unlock()
		if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: "again", Anew: true, RepeatEffects: true}); err != nil {
			t.Fatal(err)
		}
		if run := end(t, r, "again"); run.Status != machine.Completed || tool.keys["again:research#1.1/t1.c1"] != 1 {
			t.Errorf("%s %s %v", run.Status, run.Error, tool.keys)
		}
	})
}

const inAMap = `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: mapped, version: 1.0.0}
x-workflows-engine: {uses: [map]}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - {id: each, type: llm_call, config: {agent: clerk, user_prompt: Work}, map: {items: .items, as: item, concurrency: 3, collect: answers}}
  - {id: end, type: end, config: {output_mapping: .answers}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: each}
  - {source: each, target: end}
`

// TestARetryOfAMapOfAgents: each item goes on where it stood, whether it has failed or was cancelled by the failure, and those that have
// completed are kept, whenever they did.
func TestARetryOfAMapOfAgents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		var asked atomic.Int64
		tool, store := refunds(""), historymem.New()
		m := model(func(ctx context.Context, req chat.Request) (chat.Reply, error) {
			if req.Messages[len(req.Messages)-1].Role != chat.Result {
				time.Sleep(time.Duration(asked.Add(1)) * time.Second) // items come one after the other
				return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "refund", Arguments: "{}"}}}, nil
			}
			switch n := asked.Add(1); {
			case !broken.Load(), n == 4: // the first to have refunded
				return chat.Reply{Text: "done"}, nil
			case n == 5:
				return chat.Reply{}, &activities.Failure{Code: string(problem.LLMProviderError), Message: "refused", Retryable: activities.RetryPointless}
			}
			<-ctx.Done()
			return chat.Reply{}, ctx.Err()
		})
		agents := enginetest.Must(agent.New(agent.Config{
			Models: map[string]agent.Model{"main": {Chat: m, Model: agentloop.Model{Model: "m"}}},
			Agents: map[string]agent.Agent{"clerk": {Config: agentloop.Config{Instructions: "You work."}, Tools: []agent.Toolset{tool}}},
		}))
		r := enginetest.Must(graph.New(store, graph.Options{Activities: activities.Composite{LLMCall: llmagent.New(agents, nil, nil)}, Work: graph.WorkAll}))
		defer shut(t, r)
		doc := enginetest.Define(t, inAMap)
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: doc, Input: object{"items": []any{1.0, 2.0, 3.0}}}); err != nil {
			t.Fatal(err)
		}
		if run := end(t, r, "r"); run.Status != machine.Failed {
			t.Fatalf("%s %s", run.Status, run.Error)
		}
		broken.Store(false)
		before := asked.Load()
		if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: "again"}); err != nil {
			t.Fatal(err)
		}
		run := end(t, r, "again")
		if n, most := tool.paid(); run.Status != machine.Completed || n != 3 || most != 1 || asked.Load() != before+3 {
			t.Errorf("%s %s: %v, asked %d times", run.Status, run.Error, tool.keys, asked.Load()-before)
		}
		checked(t, store, "again")
	})
}

// TestTheRetryOfANodeGoesOn: an attempt that the node's policy begins takes over what the one before has done, with its approvals, and under its
// keys. Without calls that do more than read, or with retries: anew, it begins anew.
func TestTheRetryOfANodeGoesOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*agent.Agent)
		tool   agent.Toolset
		keys   map[string]int
		asked  int
	}{
		"it goes on":             {keys: map[string]int{"1/t1.c1": 1}, asked: 1 + 2*2 + 1},
		"anew":                   {change: func(a *agent.Agent) { a.Retries = agentloop.RetriesAnew }, keys: map[string]int{"1/t1.c1": 1, "2/t1.c1": 1, "3/t1.c1": 1}, asked: 3 + 2*2 + 1},
		"approved, then goes on": {change: func(a *agent.Agent) { a.Gates = []agentloop.Gate{{Tools: []string{"refund"}, Do: agent.Ask}} }, keys: map[string]int{"1/t1.c1": 1}, asked: 1 + 2*2 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tool, store := refunds(""), historymem.New()
				asked, failed := 0, 0
				m := model(func(_ context.Context, req chat.Request) (chat.Reply, error) {
					asked++
					if req.Messages[len(req.Messages)-1].Role != chat.Result {
						return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "refund", Arguments: "{}"}}}, nil
					}
					if failed++; failed <= 4 {
						return chat.Reply{}, activities.Fail(problem.LLMProviderError, "down")
					}
					return chat.Reply{Text: "done"}, nil
				})
				r := workshop(t, store, m, func(a *agent.Agent) {
					a.Retry.MaxAttempts = 2
					if c.change != nil {
						c.change(a)
					}
				}, tool)
				defer shut(t, r)
				doc := enginetest.Define(t, strings.Replace(researched, "type: agent_delegate,", "type: agent_delegate, retry: {max_attempts: 3, initial_interval: 1s},", 1))
				if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: doc, Input: object{"task": "Work."}}); err != nil {
					t.Fatal(err)
				}
				run := end(t, r, "r")
				want := map[string]int{}
				for key, n := range c.keys {
					want["r:research#1."+key] = n
				}
				if run.Status != machine.Completed || asked != c.asked || !maps.Equal(tool.keys, want) {
					t.Errorf("%s %s: asked %d times, called %v", run.Status, run.Error, asked, tool.keys)
				}
				checked(t, store, "r")
			})
		})
	}
}

// TestOfTwoRetriesOneBegins: retries that come at once, and one that comes later. Whoever asks for another one gets it, and nothing is paid again.
func TestOfTwoRetriesOneBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, store, m := newTill(0), historymem.New(), brokenDown()
		r := workshop(t, store, m, nil, p)
		defer shut(t, r)
		begin(t, r, "r")
		end(t, r, "r")
		m.down.Store(false)
		var all sync.WaitGroup
		var refused atomic.Int64
		for range 5 {
			all.Go(func() {
				if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r"}); errors.Is(err, problem.AlreadyRetried) {
					refused.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		links := enginetest.Must(store.Links(t.Context(), "r"))
		if refused.Load() != 4 || len(links) != 1 {
			t.Fatalf("%d refused, %v", refused.Load(), links)
		}
		if run := end(t, r, links[0].To); run.Status != machine.Completed {
			t.Errorf("%s %s", run.Status, run.Error)
		}
		if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r"}); !errors.Is(err, problem.AlreadyRetried) || !strings.Contains(err.Error(), links[0].To) {
			t.Errorf("later: %v", err)
		}
		if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: "again", Again: true}); err != nil {
			t.Error(err)
		}
		end(t, r, "again")
		if n, most := p.paid(); n != 1 || most != 1 {
			t.Errorf("paid %d times", n)
		}
	})
}

// TestARetryWithTodaysConfiguration: an agent whose budget is used up is retried only with today's configuration. It then has its models,
// budgets and prices, all else as it was, and what has a result is not done again; of what follows from the new budgets a replay says the same.
func TestARetryWithTodaysConfiguration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// budgets are those that are used up, of an agent that then says replies; again is said in the retry.
		budgets        agentloop.Budgets
		replies, again []played
		code           string
		// keys are those of refunds, and how often each was made.
		keys map[string]int
		// last is in the newest message of the first request of the retry, text the answer.
		last, text string
	}{
		"turns": {
			budgets: agentloop.Budgets{Turns: 2}, replies: []played{calls("refund"), calls("look")}, again: []played{calls("refund"), says("done")},
			code: "AGENT_TURNS_EXCEEDED", keys: map[string]int{"t1.c1": 1, "t3.c1": 1}, last: "nothing", text: "done",
		},
		"tool calls, of which some were refused": {
			budgets: agentloop.Budgets{ToolCalls: 1}, replies: []played{calls("refund", "refund {\"n\":2}"), calls("refund {\"n\":2}")}, again: []played{calls("refund {\"n\":2}"), says("done")},
			code: "AGENT_TOOL_CALLS_EXCEEDED", keys: map[string]int{"t1.c1": 1, "t3.c1": 1}, last: "the budget of tool calls is used up", text: "done",
		},
		"turns, and a last answer that cannot be used": {
			budgets: agentloop.Budgets{Turns: 1, OnExceeded: "finish"}, replies: []played{calls("refund"), calls("look")}, again: []played{calls("look"), says("done")},
			code: "AGENT_TURNS_EXCEEDED", keys: map[string]int{"t1.c1": 1}, last: "The budget was raised", text: "done",
		},
		"a sub-agent uses up what the agent has": {
			budgets: agentloop.Budgets{Turns: 2}, replies: []played{calls(`agent__helper {"task":"refund"}`), calls("refund")}, again: []played{says("refunded"), says("done")},
			code: "AGENT_TURNS_EXCEEDED", keys: map[string]int{"t1.c1/t1.c1": 1}, last: "paid", text: "done",
		},
		"money": {
			budgets: agentloop.Budgets{CostMicros: 50_000}, replies: []played{dearly(calls("refund"))}, again: []played{says("done")},
			code: "AGENT_COST_EXCEEDED", keys: map[string]int{"t1.c1": 1}, text: "done",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tool, store := refunds(""), historymem.New()
				look := agent.Func("look", "", func(context.Context, struct{}) (string, error) { return "nothing", nil })
				open := func(m *told, of agentloop.Model, b agentloop.Budgets, instructions string, tools ...agent.Toolset) *graph.Runner {
					helper := agent.Agent{Config: agentloop.Config{Instructions: instructions}, Models: []string{"main"}, Tools: tools}
					clerk := helper
					clerk.Budgets, clerk.Agents = b, []agent.SubAgent{{Name: "helper"}}
					return shopOf(t, store, agent.Config{Models: map[string]agent.Model{"main": {Chat: m, Model: of}}, Agents: map[string]agent.Agent{"clerk": clerk, "helper": helper}})
				}
				dear := agentloop.Model{Model: "m", Price: &agentloop.Price{Input: 10, Output: 10}}
				first := open(&told{replies: c.replies}, dear, c.budgets, "You work.", tool, look)
				begin(t, first, "r")
				if run := end(t, first, "r"); run.Status != machine.Failed || run.ErrorCode != c.code {
					t.Fatalf("%s %s: %s", run.Status, run.ErrorCode, run.Error)
				}
				_, err := first.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: "again"})
				if p, ok := problem.As(err); !ok || p.Code != problem.AgentBudgetSpent || !strings.Contains(p.Hint, "ForkRequest.CurrentAgentConfig") {
					t.Errorf("without today's configuration: %v", err)
				}
				if stood := enginetest.Must(first.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"})).GoesOn; stood.After == "" || stood.Calls == 0 {
					t.Errorf("the status says %+v", stood)
				}
				// Where the budget is as it was, the retry ends as the run did.
				if _, err := first.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: "same", CurrentAgentConfig: true}); err != nil {
					t.Fatal(err)
				}
				same := end(t, first, "same")
				if same.Status != machine.Failed || same.ErrorCode != c.code {
					t.Errorf("with the same budget: %s %s: %s", same.Status, same.ErrorCode, same.Error)
				}
				stood := enginetest.Must(first.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"})).GoesOn
				if again := enginetest.Must(first.Status(t.Context(), graph.StatusRequest{ExecutionID: "same"})).GoesOn; again.After == "0" || again.Calls < stood.Calls {
					t.Errorf("the second time it %s, the first time it %s", again, stood)
				}
				checked(t, store, "same")
				shut(t, first)

				m := &told{replies: c.again}
				other := agentloop.Model{Model: "cheap", Price: &agentloop.Price{Input: 1, Output: 1}}
				second := open(m, other, agentloop.Budgets{Turns: 9, ToolCalls: 9, CostMicros: 1_000_000}, "You are another one.", tool, look,
					agent.Func("new", "", func(context.Context, struct{}) (string, error) { return "", nil }))
				defer shut(t, second)
				if _, err := second.Fork(t.Context(), graph.ForkRequest{ExecutionID: "same", NewExecutionID: "again", CurrentAgentConfig: true}); err != nil {
					t.Fatal(err)
				}
				run := end(t, second, "again")
				if run.Status != machine.Completed || run.FinalState["text"] != c.text || run.FinalState["partial"] != nil {
					t.Errorf("%s %s %v", run.Status, run.Error, run.FinalState)
				}
				want := map[string]int{}
				for key, n := range c.keys {
					want["r:research#1.1/"+key] = n
				}
				if !maps.Equal(tool.keys, want) {
					t.Errorf("called %v, want %v", tool.keys, want)
				}
				if len(m.asked) != len(c.again) {
					t.Fatalf("the model was asked %d times, want %d", len(m.asked), len(c.again))
				}
				r := m.asked[0]
				if r.Model != "cheap" || !strings.HasPrefix(r.Messages[0].Text, "You work.") || slices.ContainsFunc(r.Tools, func(t chat.Tool) bool { return t.Name == "new" }) {
					t.Errorf("asked %s with %q and %d tools", r.Model, r.Messages[0].Text, len(r.Tools))
				}
				if last := r.Messages[len(r.Messages)-1].Text; !strings.Contains(last, c.last) {
					t.Errorf("the model was told %q", last)
				}
				var hashes []string
				for _, rec := range enginetest.Must(store.Read(t.Context(), "again", 1, 0)) {
					if s, _, ok := machine.StepOf(&rec); ok && s.Kind == agentloop.StepBegun && s.Key == "0" {
						hashes = append(hashes, s.Body["configHash"].(string))
					} else if ok && s.Kind == agentloop.StepReconfigured {
						if s.Body["previousHash"] != hashes[len(hashes)-1] {
							t.Errorf("the configuration before was %v, want %s", s.Body["previousHash"], hashes[len(hashes)-1])
						}
						hashes = append(hashes, s.Body["configHash"].(string))
					}
				}
				if len(hashes) != 3 || hashes[1] != hashes[0] || hashes[2] == hashes[1] {
					t.Errorf("the configurations were %q", hashes)
				}
				stepsIn(t, store, "again")
				checked(t, store, "again")
				forkedAtItsSteps(t, second, store, m, tool, run)
			})
		})
	}
}

// forkedAtItsSteps forks a run at each step from where its agent goes on: the fork has that configuration, too.
func forkedAtItsSteps(t *testing.T, r *graph.Runner, store *historymem.Store, m *told, tool *counted, run *view.Run) {
	t.Helper()
	before := maps.Clone(tool.keys)
	records := enginetest.Must(store.Read(t.Context(), run.ExecutionID, 1, 0))
	var seam int64
	for i := range records {
		if s, _, ok := machine.StepOf(&records[i]); ok && s.Kind == agentloop.StepContinued {
			seam = records[i].Seq
		}
	}
	for _, rec := range records[seam-1:] {
		s, _, ok := machine.StepOf(&rec)
		if !ok {
			continue
		}
		m.mu.Lock()
		m.replies = []played{says(run.FinalState["text"].(string)), says(run.FinalState["text"].(string))}
		m.mu.Unlock()
		fork := enginetest.Must(r.Fork(t.Context(), graph.ForkRequest{ExecutionID: run.ExecutionID, Seq: rec.Seq}))
		if end := end(t, r, fork.ExecutionID); end.Status != machine.Completed {
			t.Errorf("a fork at %s %s: %s %s", s.Kind, s.Key, end.Status, end.Error)
		}
		checked(t, store, fork.ExecutionID)
	}
	for key, n := range tool.keys {
		if strings.HasPrefix(key, "r:") && before[key] != n {
			t.Errorf("a fork has called %s", key)
		}
	}
}

// TestAnAgentThatWasStoppedIsRetriedAnew: it cannot go on, also with today's configuration.
func TestAnAgentThatWasStoppedIsRetriedAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &told{replies: []played{calls("look"), says("done")}}
		look := agent.Func("look", "", func(context.Context, struct{}) (string, error) { return "nothing", nil })
		r := workshop(t, historymem.New(), m, func(a *agent.Agent) { a.Gates = []agentloop.Gate{{Tools: []string{"look"}, Do: agent.Ask}} }, look)
		defer shut(t, r)
		begin(t, r, "r")
		run := enginetest.Must(r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &graph.Wait{Limit: time.Hour}}))
		enginetest.Must(r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: run.Pending[0].ID, Payload: object{"decision": "stop"}}))
		if run := end(t, r, "r"); run.ErrorCode != "AGENT_STOPPED" {
			t.Fatalf("%s %s", run.Status, run.Error)
		}
		for _, current := range []bool{false, true} {
			_, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", CurrentAgentConfig: current})
			if p, ok := problem.As(err); !ok || p.Code != problem.ValidationError || !strings.Contains(p.Hint, "ForkRequest.Anew") {
				t.Errorf("today's configuration %v: %v", current, err)
			}
		}
		enginetest.Must(r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: "again", Anew: true}))
		if run := end(t, r, "again"); run.Status != machine.Completed {
			t.Errorf("anew: %s %s", run.Status, run.Error)
		}
	})
}
