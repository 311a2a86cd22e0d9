package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// model is a model of Go.
type model func(ctx context.Context, req chat.Request) (chat.Reply, error)

func (m model) Chat(ctx context.Context, req chat.Request) (chat.Reply, error) { return m(ctx, req) }

// said returns the last message of a request.
func said(req chat.Request) string { return req.Messages[len(req.Messages)-1].Text }

// workshop is an engine with one agent, clerk.
func workshop(t testing.TB, store history.Store, m chat.Model, change func(*agent.Agent), tools ...agent.Toolset) *graph.Runner {
	t.Helper()
	clerk := agent.Agent{Config: agentloop.Config{Instructions: "You work."}, Tools: tools}
	if change != nil {
		change(&clerk)
	}
	return shopOf(t, store, agent.Config{Models: map[string]agent.Model{"main": {Chat: m, Model: agentloop.Model{Model: "m"}}}, Agents: map[string]agent.Agent{"clerk": clerk}})
}

func shopOf(t testing.TB, store history.Store, c agent.Config) *graph.Runner {
	t.Helper()
	agents, err := agent.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.Must(graph.New(store, graph.Options{Delegates: activities.Composite{SDK: agents}, Work: graph.WorkAll}))
}

// onceThen calls a tool first, and answers with the result that it reads.
func onceThen(tool string) model {
	return func(_ context.Context, req chat.Request) (chat.Reply, error) {
		if req.Messages[len(req.Messages)-1].Role == chat.Result {
			return chat.Reply{Text: said(req)}, nil
		}
		return chat.Reply{Calls: []chat.Call{{ID: "a", Name: tool, Arguments: "{}"}}}, nil
	}
}

func work(t testing.TB, r *graph.Runner) *view.Run {
	t.Helper()
	run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: enginetest.Define(t, researched), Input: object{"task": "Work."}, Wait: graph.Wait{Limit: 2 * time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// goOn brings a run to its end, approving what it asks.
func goOn(t testing.TB, r *graph.Runner) (*view.Run, error) {
	t.Helper()
	run, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &graph.Wait{Limit: time.Hour}})
	for err == nil && !run.Status.Terminal() {
		if len(run.Pending) > 0 && run.Pending[0].Kind == machine.WaitInterrupt {
			run, err = r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: run.Pending[0].ID, Payload: object{"decision": "approve"}})
			continue
		}
		run, err = r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &graph.Wait{Limit: time.Hour}})
	}
	if run == nil {
		run = &view.Run{}
	}
	return run, err
}

// TestToolsMayMisbehave: whatever a tool does, the call has a result, and the process lives.
func TestToolsMayMisbehave(t *testing.T) {
	t.Parallel()
	type tool = func(ctx context.Context, in struct{}) (any, error)
	release := func(ctx context.Context, in struct{}) (any, error) { time.Sleep(30 * time.Minute); return "late", nil }
	for name, c := range map[string]struct {
		tool tool
		want string
		took time.Duration
	}{
		"panics":              {func(context.Context, struct{}) (any, error) { panic("boom") }, `"TOOL_PANIC"`, 0},
		"ends its goroutine":  {func(context.Context, struct{}) (any, error) { runtime.Goexit(); return nil, nil }, `"TOOL_PANIC"`, 0},
		"obeys its context":   {func(ctx context.Context, _ struct{}) (any, error) { <-ctx.Done(); return nil, ctx.Err() }, `"TOOL_TIMEOUT"`, time.Minute},
		"ignores its context": {release, `"TOOL_TIMEOUT"`, 75 * time.Second},
		"returns NaN":         {func(context.Context, struct{}) (any, error) { return math.NaN(), nil }, `"ACTIVITY_OUTPUT_INVALID"`, 0},
		"returns a channel":   {func(context.Context, struct{}) (any, error) { return make(chan int), nil }, `"ACTIVITY_OUTPUT_INVALID"`, 0},
		"returns too much":    {func(context.Context, struct{}) (any, error) { return strings.Repeat("x", 3<<20), nil }, `{"data_preview":"[tool] text, 3.1 MB. It begins: xxx`, 0},
		"returns nothing":     {func(context.Context, struct{}) (any, error) { return nil, nil }, `{"data":null}`, 0},
		"fails":               {func(context.Context, struct{}) (any, error) { return nil, errors.New("no") }, `"HANDLER_ERROR"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(time.Hour) // until what does not obey has ended
				r := workshop(t, historymem.New(), onceThen("tool"), nil, agent.Func("tool", "", c.tool))
				defer shut(t, r)
				began := time.Now()
				run := work(t, r)
				if run.Status != machine.Completed || !strings.Contains(fmt.Sprint(run.FinalState["text"]), c.want) {
					t.Errorf("%s %s %s, %v", run.Status, run.ErrorCode, run.Error, run.FinalState)
				}
				if took := time.Since(began); took > c.took {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// TestModelsMayMisbehave: a model that panics, ends its goroutine or hangs fails a try.
func TestModelsMayMisbehave(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model model
		code  problem.Code
	}{
		"panics":             {func(context.Context, chat.Request) (chat.Reply, error) { panic("boom") }, problem.ExecutorPanic},
		"ends its goroutine": {func(context.Context, chat.Request) (chat.Reply, error) { runtime.Goexit(); return chat.Reply{}, nil }, problem.ExecutorPanic},
		"obeys its context": {func(ctx context.Context, _ chat.Request) (chat.Reply, error) {
			<-ctx.Done()
			return chat.Reply{}, ctx.Err()
		}, problem.Timeout},
		"ignores its context": {func(context.Context, chat.Request) (chat.Reply, error) {
			time.Sleep(20 * time.Minute)
			return chat.Reply{Text: "late"}, nil
		}, problem.Timeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(time.Hour)
				asked := atomic.Int32{}
				r := workshop(t, historymem.New(), model(func(ctx context.Context, req chat.Request) (chat.Reply, error) {
					if asked.Add(1) > 1 {
						return chat.Reply{Text: "well"}, nil
					}
					return c.model(ctx, req)
				}), nil)
				defer shut(t, r)
				if run := work(t, r); run.Status != machine.Completed || run.FinalState["text"] != "well" {
					t.Errorf("%s %s %s, %v", run.Status, run.ErrorCode, run.Error, run.FinalState)
				}
				r2 := workshop(t, historymem.New(), c.model, func(a *agent.Agent) { a.Retry.MaxAttempts = 1 })
				defer shut(t, r2)
				if run := work(t, r2); run.Status != machine.Failed || run.ErrorCode != string(c.code) {
					t.Errorf("%s %s %s", run.Status, run.ErrorCode, run.Error)
				}
			})
		})
	}
}

// TestAStoppedCallHasNoResult closes the engine while a tool works that must not be repeated: what the tool says of its end is no result,
// and the model reads that the outcome is unknown.
func TestAStoppedCallHasNoResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for range 20 { // what comes first is left to chance
			store, called := historymem.New(), atomic.Int32{}
			refund := agent.Func("refund", "", func(ctx context.Context, _ struct{}) (any, error) {
				called.Add(1)
				<-ctx.Done()
				return nil, ctx.Err()
			})
			r := workshop(t, store, onceThen("refund"), nil, refund)
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: enginetest.Define(t, researched), Input: object{"task": "Work."}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			shut(t, r)
			r = workshop(t, store, onceThen("refund"), nil, refund)
			run, err := goOn(t, r)
			shut(t, r)
			if err != nil || run.Status != machine.Completed || called.Load() != 1 || !strings.Contains(fmt.Sprint(run.FinalState["text"]), "TOOL_OUTCOME_UNKNOWN") {
				t.Fatalf("%v, %d calls, %+v, steps %q", err, called.Load(), run.FinalState, stepsOf(t, store))
			}
		}
	})
}

// TestAnAgentFinishesAfterItsTime: the last turn is given the time of a turn.
func TestAnAgentFinishesAfterItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := workshop(t, historymem.New(), model(func(ctx context.Context, req chat.Request) (chat.Reply, error) {
			if strings.Contains(said(req), "Give your final answer now") {
				select {
				case <-time.After(10 * time.Second):
					return chat.Reply{Text: "what I have"}, nil
				case <-ctx.Done():
					return chat.Reply{}, ctx.Err()
				}
			}
			return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "slow", Arguments: "{}"}}}, nil
		}), func(a *agent.Agent) { a.Budgets = agentloop.Budgets{WorkMs: 30_000, OnExceeded: "finish"} },
			agent.Func("slow", "", func(ctx context.Context, _ struct{}) (any, error) { <-ctx.Done(); return nil, ctx.Err() }))
		defer shut(t, r)
		if run := work(t, r); run.Status != machine.Completed || run.FinalState["text"] != "what I have" {
			t.Errorf("%s %s %s, %v", run.Status, run.ErrorCode, run.Error, run.FinalState)
		}
	})
}

// broken is a toolset that cannot list its tools once it is broken.
type broken struct{ is atomic.Bool }

func (b *broken) Tools(context.Context) ([]agent.Tool, error) {
	if b.is.Load() {
		return nil, activities.Fail("SERVER_DOWN", "the server is down")
	}
	return []agent.Tool{{Name: "remote", Parameters: object{"type": "object"}}}, nil
}

func (b *broken) Call(context.Context, agent.Call) (any, error) { return "done", nil }

// TestABrokenToolsetStandsAlone: after a restart the tools of the others can be called, and the model reads why its own cannot.
func TestABrokenToolsetStandsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, remote := historymem.New(), &broken{}
		m := model(func(_ context.Context, req chat.Request) (chat.Reply, error) {
			if len(req.Messages) > 3 {
				return chat.Reply{Text: req.Messages[len(req.Messages)-2].Text + said(req)}, nil
			}
			return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "remote", Arguments: "{}"}, {ID: "b", Name: "local", Arguments: "{}"}}}, nil
		})
		start := func() *graph.Runner {
			return workshop(t, store, m, func(a *agent.Agent) { a.Gates = []agentloop.Gate{{Tools: []string{"*"}, Do: "ask"}} }, remote,
				agent.Func("local", "", func(context.Context, struct{}) (any, error) { return "local work", nil }))
		}
		r := start()
		if run := work(t, r); run.Status != machine.Interrupted {
			t.Fatalf("%+v", run)
		}
		shut(t, r)
		remote.is.Store(true)
		r = start()
		defer shut(t, r)
		run, err := goOn(t, r)
		if text := fmt.Sprint(run.FinalState["text"]); err != nil || !strings.Contains(text, "SERVER_DOWN") || !strings.Contains(text, "local work") {
			t.Errorf("%v, %s", err, text)
		}
	})
}
