package agent_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// policed is an engine whose agent calls pay with an amount of 100 once, under hooks and a gate that asks about more than 500.
func policed(t testing.TB, store history.Store, hooks agent.Hooks, paid *atomic.Int64) *graph.Runner {
	t.Helper()
	pay := agent.Func("pay", "Pays.", func(_ context.Context, in refund) (object, error) {
		paid.Add(int64(in.Amount))
		return object{"paid": in.Amount}, nil
	})
	m := model(func(_ context.Context, req chat.Request) (chat.Reply, error) {
		if req.Messages[len(req.Messages)-1].Role == chat.Result {
			return chat.Reply{Text: said(req)}, nil
		}
		return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "pay", Arguments: `{"amount":100}`}}}, nil
	})
	agents, err := agent.New(agent.Config{
		Models: map[string]agent.Model{"main": {Chat: m, Model: agentloop.Model{Model: "m"}}}, Hooks: hooks,
		Agents: map[string]agent.Agent{"clerk": {
			Config: agentloop.Config{
				Instructions: "You work.",
				Gates:        []agentloop.Gate{{Tools: []string{"pay"}, When: ".arguments.amount > 500", Do: agent.Ask}, {Tools: []string{"pay"}, When: ".arguments.amount == 13", Do: agent.Deny, Reason: "no thirteens"}},
			},
			Tools: []agent.Toolset{pay},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.Must(graph.New(store, graph.Options{Delegates: activities.Composite{SDK: agents}, Work: graph.WorkAll}))
}

// TestHooksTighten: what a hook says of a call holds, what it cannot say is put to a person, and gates hold for arguments that it replaces.
func TestHooksTighten(t *testing.T) {
	t.Parallel()
	says := func(d agent.Decision, err error) func(context.Context, agent.PlannedCall) (agent.Decision, error) {
		return func(context.Context, agent.PlannedCall) (agent.Decision, error) { return d, err }
	}
	for name, c := range map[string]struct {
		hook   func(context.Context, agent.PlannedCall) (agent.Decision, error)
		asks   string // what the question shows as its reason; "" for no question
		paid   int64
		answer string
	}{
		"allow":                           {says(agent.Decision{Do: agent.Allow}, nil), "", 100, `"paid":100`},
		"nothing":                         {says(agent.Decision{}, nil), "", 100, `"paid":100`},
		"deny":                            {says(agent.Decision{Do: agent.Deny, Reason: "closed"}, nil), "", 0, "closed"},
		"ask":                             {says(agent.Decision{Do: agent.Ask, Reason: "it is much"}, nil), "it is much", 100, `"paid":100`},
		"replace":                         {says(agent.Decision{Do: agent.Replace, Arguments: object{"amount": 7}}, nil), "", 7, "operator changed"},
		"replace what a gate asks about":  {says(agent.Decision{Do: agent.Replace, Arguments: object{"amount": 501}}, nil), "-", 501, `"paid":501`},
		"replace what a gate denies":      {says(agent.Decision{Do: agent.Replace, Arguments: object{"amount": 13}}, nil), "", 0, "no thirteens"},
		"replace by what breaks the tool": {says(agent.Decision{Do: agent.Replace, Arguments: object{"amount": "all"}}, nil), "break the tool's parameters", 100, `"paid":100`},
		"a decision that there is not":    {says(agent.Decision{Do: "maybe"}, nil), "did not decide", 100, `"paid":100`},
		"stop, which is not for a call":   {says(agent.Decision{Do: agent.Stop}, nil), "did not decide", 100, `"paid":100`},
		"an error":                        {says(agent.Decision{}, errors.New("the policy server is down")), "the policy server is down", 100, `"paid":100`},
		"a panic":                         {func(context.Context, agent.PlannedCall) (agent.Decision, error) { panic("boom") }, "boom", 100, `"paid":100`},
		"the end of its goroutine": {func(context.Context, agent.PlannedCall) (agent.Decision, error) {
			runtime.Goexit()
			return agent.Decision{}, nil
		}, "Goexit", 100, `"paid":100`},
		"too late": {func(ctx context.Context, _ agent.PlannedCall) (agent.Decision, error) {
			<-ctx.Done()
			return agent.Decision{}, ctx.Err()
		}, "not answered within 60000 ms", 100, `"paid":100`},
		"late, and deaf to its context": {func(context.Context, agent.PlannedCall) (agent.Decision, error) {
			time.Sleep(time.Hour)
			return agent.Decision{}, nil
		}, "not answered within", 100, `"paid":100`},
		"changes of its copy mean nothing": {func(_ context.Context, c agent.PlannedCall) (agent.Decision, error) {
			c.Arguments["amount"] = 1
			return agent.Decision{}, nil
		}, "", 100, `"paid":100`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var paid atomic.Int64
				r := policed(t, historymem.New(), agent.Hooks{BeforeTool: c.hook}, &paid)
				run := work(t, r)
				if asks := run.Status == machine.Interrupted; asks != (c.asks != "") {
					t.Fatalf("%s, %+v", run.Status, run.Pending)
				} else if asks {
					shown := fmt.Sprint(run.Pending[0].Show)
					if paid.Load() != 0 || c.asks != "-" && !strings.Contains(shown, c.asks) {
						t.Errorf("paid %d, the question shows %s", paid.Load(), shown)
					}
					run = end(t, r, "r")
				}
				time.Sleep(2 * time.Hour)
				shut(t, r)
				if text := fmt.Sprint(run.FinalState["text"]); run.Status != machine.Completed || paid.Load() != c.paid || !strings.Contains(text, c.answer) {
					t.Errorf("%s %s, paid %d, the model reads %s", run.Status, run.Error, paid.Load(), text)
				}
			})
		})
	}
}

// TestAPersonsApprovalStaysNeeded: a hook that allows does not take the gate away, and the person's answer is not put to the hook.
func TestAPersonsApprovalStaysNeeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		r := workshop(t, historymem.New(), onceThen("pay"), nil, newTill(0))
		shut(t, r)
		agents := enginetest.Must(agent.New(agent.Config{
			Models: map[string]agent.Model{"main": {Chat: onceThen("pay"), Model: agentloop.Model{Model: "m"}}},
			Agents: map[string]agent.Agent{"clerk": {Tools: []agent.Toolset{newTill(0)}}},
			Hooks: agent.Hooks{BeforeTool: func(context.Context, agent.PlannedCall) (agent.Decision, error) {
				asked.Add(1)
				return agent.Decision{Do: agent.Allow}, nil
			}},
		}))
		r = enginetest.Must(graph.New(historymem.New(), graph.Options{Delegates: activities.Composite{SDK: agents}, Work: graph.WorkAll}))
		defer shut(t, r)
		if run := work(t, r); run.Status != machine.Interrupted || asked.Load() != 1 {
			t.Fatalf("%s, the hook was asked %d times", run.Status, asked.Load())
		}
		if run := end(t, r, "r"); run.Status != machine.Completed || asked.Load() != 1 {
			t.Errorf("%s, the hook was asked %d times", run.Status, asked.Load())
		}
	})
}

// TestHooksAreNotAskedAgain: what a hook said is recorded. Another process, whose hook would say something else, goes on with it; and a hook
// that had not said anything when its process ended is asked by the next one.
func TestHooksAreNotAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var paid, asked atomic.Int64
		store := historymem.New()
		ask := agent.Hooks{BeforeTool: func(ctx context.Context, _ agent.PlannedCall) (agent.Decision, error) {
			if asked.Add(1) == 1 {
				<-ctx.Done()
				return agent.Decision{Do: agent.Deny}, ctx.Err()
			}
			return agent.Decision{Do: agent.Ask}, nil
		}}
		r := policed(t, store, ask, &paid)
		begin(t, r, "r")
		time.Sleep(time.Second)
		shut(t, r) // the hook has said nothing yet
		if steps := strings.Join(stepsOf(t, store), ", "); strings.Contains(steps, "decided") || asked.Load() != 1 {
			t.Fatalf("steps %s, asked %d times", steps, asked.Load())
		}
		r = policed(t, store, ask, &paid)
		if run := enginetest.Must(r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &graph.Wait{Limit: time.Hour}})); run.Status != machine.Interrupted || asked.Load() != 2 {
			t.Fatalf("%s, asked %d times", run.Status, asked.Load())
		}
		shut(t, r)
		r = policed(t, store, agent.Hooks{BeforeTool: func(context.Context, agent.PlannedCall) (agent.Decision, error) {
			asked.Add(1)
			return agent.Decision{Do: agent.Deny}, nil
		}}, &paid)
		defer shut(t, r)
		if run := end(t, r, "r"); run.Status != machine.Completed || paid.Load() != 100 || asked.Load() != 2 {
			t.Errorf("%s, paid %d, asked %d times", run.Status, paid.Load(), asked.Load())
		}
		if steps := strings.Join(stepsOf(t, store), ", "); strings.Count(steps, "decided t1.c1") != 1 {
			t.Errorf("steps %s", steps)
		}
	})
}

// TestAMissingHookAsks: an agent that began under a hook does not go on without it.
func TestAMissingHookAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var paid atomic.Int64
		store := historymem.New()
		hung := func(ctx context.Context, _ agent.PlannedCall) (agent.Decision, error) {
			<-ctx.Done()
			return agent.Decision{}, ctx.Err()
		}
		r := policed(t, store, agent.Hooks{BeforeTool: hung}, &paid)
		begin(t, r, "r")
		time.Sleep(time.Second)
		shut(t, r)
		r = policed(t, store, agent.Hooks{}, &paid)
		defer shut(t, r)
		run := enginetest.Must(r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &graph.Wait{Limit: time.Hour}}))
		if run.Status != machine.Interrupted || paid.Load() != 0 || !strings.Contains(fmt.Sprint(run.Pending[0].Show), "does not have the hook") {
			t.Errorf("%s, paid %d, %+v", run.Status, paid.Load(), run.Pending)
		}
	})
}

// TestAHookStopsAfterATurn: with its reason, for good, and also where it fails.
func TestAHookStopsAfterATurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hook func(context.Context, agent.Turn) (agent.Decision, error)
		want string // of the failure; "" for none
	}{
		"allow": {func(_ context.Context, t agent.Turn) (agent.Decision, error) {
			if t.Turn != 1 || t.Agent != "clerk" || t.Totals["tool_calls"] != 1.0 {
				return agent.Decision{Do: agent.Stop, Reason: fmt.Sprintf("%+v", t)}, nil
			}
			return agent.Decision{Do: agent.Allow}, nil
		}, ""},
		"stop": {func(context.Context, agent.Turn) (agent.Decision, error) {
			return agent.Decision{Do: agent.Stop, Reason: "enough"}, nil
		}, "enough"},
		"deny": {func(context.Context, agent.Turn) (agent.Decision, error) { return agent.Decision{Do: agent.Deny}, nil }, "allow or stop"},
		"error": {func(context.Context, agent.Turn) (agent.Decision, error) {
			return agent.Decision{}, errors.New("no policy")
		}, "no policy"},
		"a panic": {func(context.Context, agent.Turn) (agent.Decision, error) { panic("boom") }, "boom"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var paid atomic.Int64
				r := policed(t, historymem.New(), agent.Hooks{AfterTurn: c.hook}, &paid)
				defer shut(t, r)
				run := work(t, r)
				if c.want == "" {
					if run.Status != machine.Completed {
						t.Errorf("%s %s", run.Status, run.Error)
					}
					return
				}
				if run.Status != machine.Failed || run.ErrorCode != "AGENT_STOPPED" || !strings.Contains(run.Error, c.want) || paid.Load() != 100 {
					t.Errorf("%s %s %s, paid %d", run.Status, run.ErrorCode, run.Error, paid.Load())
				}
			})
		})
	}
}
