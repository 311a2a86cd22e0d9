package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// work is what an agent does with an attempt, whatever protocol it speaks.
type agentWork struct {
	mu    sync.Mutex
	calls int
	// open counts calls that have not returned.
	open int
	do   func(ctx context.Context, attempt int) (object, error)
}

func (w *agentWork) perform(ctx context.Context) (object, error) {
	w.mu.Lock()
	w.calls++
	w.open++
	n := w.calls
	w.mu.Unlock()
	defer func() { w.mu.Lock(); w.open--; w.mu.Unlock() }()
	return w.do(ctx, n)
}

func (w *agentWork) counted() (calls, open int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls, w.open
}

// trip makes a function an HTTP transport, so that agents over HTTP work on fake time.
type trip func(*http.Request) (int, string, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body, err := f(r)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// delegateKinds makes an executor of each kind that is built in, around the same work.
var delegateKinds = map[string]func(t *testing.T, w *agentWork) activities.Composite{
	"sdk": func(t *testing.T, w *agentWork) activities.Composite {
		var agents delegate.SDK
		if err := agents.Register("coder", func(ctx context.Context, _ activities.Request) (any, error) { return w.perform(ctx) }); err != nil {
			t.Fatal(err)
		}
		return activities.Composite{SDK: &agents}
	},
	"mcp": func(_ *testing.T, w *agentWork) activities.Composite {
		return activities.Composite{MCP: delegate.NewMCP(map[string]delegate.Tool{"coder": {Server: "s", Name: "t"}},
			func(ctx context.Context, _ delegate.Tool, _ activities.Request) (any, error) { return w.perform(ctx) })}
	},
	"a2a http-tasks": func(t *testing.T, w *agentWork) activities.Composite {
		a, err := delegate.NewA2AHTTP(overHTTP(w, func(_ string, out object) object {
			return object{"id": "t", "status": "completed", "output": out}
		}))
		if err != nil {
			t.Fatal(err)
		}
		return activities.Composite{A2A: a}
	},
	"a2a jsonrpc": func(t *testing.T, w *agentWork) activities.Composite {
		a, err := delegate.NewA2A(overHTTP(w, func(id string, out object) object {
			return object{"jsonrpc": "2.0", "id": id, "result": object{
				"kind": "task", "id": "t", "contextId": "c", "status": object{"state": "completed"},
				"artifacts": []any{object{"parts": []any{object{"kind": "data", "data": out}}}},
			}}
		}))
		if err != nil {
			t.Fatal(err)
		}
		return activities.Composite{A2A: a}
	},
}

func overHTTP(w *agentWork, answer func(id string, out object) object) delegate.A2AConfig {
	return delegate.A2AConfig{BaseURL: "http://agent.test", NoAuth: true, RequestTimeout: time.Hour, Client: &http.Client{
		Transport: trip(func(r *http.Request) (int, string, error) {
			if r.Method == http.MethodGet {
				return 404, "", nil
			}
			var call struct{ ID string }
			if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
				return 0, "", err
			}
			out, err := w.perform(r.Context())
			switch {
			case r.Context().Err() != nil:
				return 0, "", r.Context().Err()
			case err != nil:
				return 500, err.Error(), nil
			}
			body, err := json.Marshal(answer(call.ID, out))
			return 200, string(body), err
		}),
	}}
}

// eachKind runs a test for each kind of delegate, on the main path and in a branch.
func eachKind(t *testing.T, do func(ctx context.Context, attempt int) (object, error), members string, check func(t *testing.T, r *graph.Runner, w *agentWork)) {
	for kind, build := range delegateKinds {
		protocol, _, _ := strings.Cut(kind, " ")
		node := fmt.Sprintf(`{"id":"d","type":"agent_delegate","config":{"agent_id":"coder","protocol":%q,"input_mapping":{"task":"do"}},%s}`, protocol, members)
		for place, def := range map[string]func(testing.TB) *definition.Document{
			"main path": func(t testing.TB) *definition.Document {
				return workflow(t, "del", []string{startNode(), node, endNode()}, "s d", "d e")
			},
			"branch": func(t testing.TB) *definition.Document {
				return workflow(t, "par", []string{startNode(), fork("p", "all", "d", "x"), node, timerWait("x", "1s"), endNode()}, "s p", "p e", "d e", "x e")
			},
		} {
			t.Run(kind+" "+place, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &agentWork{do: do}
					r := newRunner(t, historymem.New(), graph.Options{Delegates: build(t, w)})
					atOnce(t, r, "r", def(t))
					check(t, r, w)
					synctest.Wait()
					if _, open := w.counted(); open > 0 {
						t.Errorf("%d calls are still under way", open)
					}
				})
			})
		}
	}
}

func TestDelegatesOfAllKindsAreRetried(t *testing.T) {
	t.Parallel()
	eachKind(t, func(_ context.Context, attempt int) (object, error) {
		if attempt < 3 {
			return nil, errors.New("not today")
		}
		return object{"attempt": attempt}, nil
	}, `"retry":{"max_attempts":3,"initial_interval":"1m","backoff_coefficient":2}`, func(t *testing.T, r *graph.Runner, _ *agentWork) {
		begun := time.Now()
		run := settled(t, r, "r")
		wantStatus(t, run, machine.Completed)
		if took := time.Since(begun).Round(time.Second); took != 3*time.Minute || run.FinalState["attempt"] != 3.0 {
			t.Errorf("after %s: %v", took, run.FinalState)
		}
	})
}

func TestDelegatesOfAllKindsHaveATimeout(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context, _ int) (object, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	eachKind(t, hang, `"timeout":"30s","retry":{"max_attempts":2}`, func(t *testing.T, r *graph.Runner, w *agentWork) {
		begun := time.Now()
		run := settled(t, r, "r")
		wantStatus(t, run, machine.Failed)
		calls, _ := w.counted()
		if took := time.Since(begun).Round(time.Second); run.ErrorCode != string(problem.Timeout) || calls != 2 || took != time.Minute {
			t.Errorf("%s after %s and %d calls", run.ErrorCode, took, calls)
		}
	})
}

func TestDelegatesOfAllKindsAreCancelled(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context, _ int) (object, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	eachKind(t, hang, `"retry":{"max_attempts":2}`, func(t *testing.T, r *graph.Runner, w *agentWork) {
		cancelRun(t, r, nil)
		synctest.Wait()
		if calls, open := w.counted(); calls != 1 || open != 0 {
			t.Errorf("%d calls, %d open", calls, open)
		}
		wantStatus(t, status(t, r, "r"), machine.Cancelled)
	})
}

// TestADelegatesFailureKeepsItsCode whatever speaks for the agent.
func TestADelegatesFailureKeepsItsCode(t *testing.T) {
	t.Parallel()
	codes := map[string]problem.Code{
		"sdk": "QUOTA", "mcp": problem.DelegateProtocolError, "a2a http-tasks": problem.A2AProviderError, "a2a jsonrpc": problem.A2AProviderError,
	}
	eachKind(t, func(context.Context, int) (object, error) {
		return nil, &activities.Failure{Code: "QUOTA", Message: "no more", Retryable: activities.RetryPointless}
	}, `"retry":{"max_attempts":1}`, func(t *testing.T, r *graph.Runner, _ *agentWork) {
		run := settled(t, r, "r")
		wantStatus(t, run, machine.Failed)
		kind := strings.TrimSuffix(strings.TrimSuffix(t.Name()[strings.LastIndex(t.Name(), "/")+1:], "_main_path"), "_branch")
		if want := codes[strings.ReplaceAll(kind, "_", " ")]; want == "" || run.ErrorCode != string(want) || !strings.Contains(run.Error, "no more") {
			t.Errorf("%s: %s %q, want %s", kind, run.ErrorCode, run.Error, want)
		}
	})
}
