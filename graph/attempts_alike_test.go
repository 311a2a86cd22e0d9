package graph_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// alike calls do for a node "a" of every activity type, on the main path and in a branch beside another node "b".
func alike(t *testing.T, members string, do func(t *testing.T, d *definition.Document)) {
	configs := map[string]string{
		"step": `{"handler":"urn:x"}`, "tool_call": `{"server":"x","tool":"y"}`, "llm_call": `{"model":"m","prompt":"p"}`,
	}
	for nodeType, config := range configs {
		node := fmt.Sprintf(`{"id":"a","type":%q,"config":%s,%s}`, nodeType, config, members)
		for place, d := range map[string]*definition.Document{
			"on the main path": workflow(t, "main", []string{startNode(), node, endNode()}, "s a", "a e"),
			"in a branch": workflow(t, "branch", []string{startNode(), fork("p", "all", "b", "a"), tool("b"), node, endNode()},
				"s p", "p e", "a e", "b e"),
		} {
			t.Run(nodeType+" "+place, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { do(t, d) })
			})
		}
	}
}

// failures gives the codes of the failed attempts of node "a", each with the time until the next one.
func failures(t *testing.T, store history.Store) (all []string) {
	for _, r := range records(t, store, "r") {
		if r.Name != history.ActivityFailed || r.Payload.NodeID != "a" {
			continue
		}
		pause := "never"
		if r.Payload.WillRetry {
			pause = "0s"
		}
		if !r.Payload.RetryAt.IsZero() {
			pause = r.Payload.RetryAt.Sub(r.CreatedAt).String()
		}
		all = append(all, r.Payload.Code+" "+pause)
	}
	return all
}

const retried = `"timeout":"5s","retry":{"max_attempts":4,"initial_interval":"10s","backoff_coefficient":2,"max_interval":"25s","non_retryable_errors":["NEVER"]}`

// Timeout, back-off and the last attempt of what the engine performs.
func TestAttemptsAreAlikeInProcess(t *testing.T) {
	t.Parallel()
	alike(t, retried, func(t *testing.T, d *definition.Document) {
		exec := &script{answers: answers{"a": func(ctx context.Context, req activities.Request) (any, error) {
			switch req.Attempt {
			case 1:
				return hang(ctx, req)
			case 2:
				return nil, &activities.Failure{Code: "C", RetryAfter: 22 * time.Second}
			case 3:
				panic("ouch")
			}
			return object{"a": req.Attempt}, nil
		}}}
		store := historymem.New()
		r := newRunner(t, store, graph.Options{Activities: exec, WaitLimit: time.Hour})
		begun := time.Now()
		run := start(t, r, "r", d, nil)
		wantStatus(t, run, machine.Completed)
		if want := []string{"TIMEOUT 10s", "C 22s", "ACTIVITY_EXECUTOR_PANIC 25s"}; !slices.Equal(failures(t, store), want) {
			t.Errorf("failures %q, want %q", failures(t, store), want)
		}
		if took := time.Since(begun); took != 62*time.Second {
			t.Errorf("it took %v, want 62 s", took)
		}
		keys := slices.DeleteFunc(exec.keys(), func(key string) bool { return key == "r:b#1.1" })
		if want := []string{"r:a#1.1", "r:a#1.2", "r:a#1.3", "r:a#1.4"}; !slices.Equal(keys, want) {
			t.Errorf("keys %q, want %q", keys, want)
		}
	})
}

// What no further attempt would mend ends the node at once, whatever its policy allows.
func TestPointlessAttemptsAreAlike(t *testing.T) {
	t.Parallel()
	for _, failure := range []*activities.Failure{{Code: "NEVER"}, {Code: "C", Retryable: activities.RetryPointless}} {
		alike(t, retried, func(t *testing.T, d *definition.Document) {
			exec := &script{answers: answers{"a": func(context.Context, activities.Request) (any, error) { return nil, failure }}}
			store := historymem.New()
			run := start(t, newRunner(t, store, graph.Options{Activities: exec}), "r", d, nil)
			wantStatus(t, run, machine.Failed)
			if got := failures(t, store); !slices.Equal(got, []string{failure.Code + " never"}) || run.ErrorCode != failure.Code || run.ErrorNodeID != "a" {
				t.Errorf("failures %q, run %s at %s", got, run.ErrorCode, run.ErrorNodeID)
			}
		})
	}
}

// The same policy where a host performs the attempts.
func TestAttemptsAreAlikeHostMediated(t *testing.T) {
	t.Parallel()
	alike(t, retried, func(t *testing.T, d *definition.Document) {
		r, store := host(t, graph.Options{WaitLimit: time.Hour})
		run := start(t, r, "r", d, nil)
		if len(run.Pending) == 2 {
			run = submitSpan(t, r, run.Pending[0], "")
		}
		begun := time.Now()
		for attempt, want := range []time.Duration{10 * time.Second, 20 * time.Second, 25 * time.Second} {
			p := run.Pending[0]
			if p.Attempt != attempt+1 || p.IdempotencyKey != fmt.Sprintf("r:a#1.%d", attempt+1) {
				t.Fatalf("pending %+v", p)
			}
			before := time.Now()
			if run = submitSpan(t, r, p, "C"); time.Since(before) != want {
				t.Errorf("attempt %d came after %v, want %v", attempt+2, time.Since(before), want)
			}
		}
		run = submitSpan(t, r, run.Pending[0], "")
		wantStatus(t, run, machine.Completed)
		if want := []string{"C 10s", "C 20s", "C 25s"}; !slices.Equal(failures(t, store), want) || time.Since(begun) != 55*time.Second {
			t.Errorf("failures %q after %v", failures(t, store), time.Since(begun))
		}
	})
}

// submitSpan submits the outcome of a pending attempt: a failure if there is a code.
func submitSpan(t *testing.T, r *graph.Runner, p view.Pending, code string) *view.Run {
	t.Helper()
	req := graph.SubmitRequest{ExecutionID: "r", NodeID: p.NodeID, Span: p.Span, OK: code == "", Code: code}
	if code != "" {
		req.Error = "no luck"
	}
	run, err := r.SubmitActivity(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// A cancel ends an attempt and a back-off alike, in both modes; nothing is performed or asked for afterwards.
func TestCancelledAttemptsAreAlike(t *testing.T) {
	t.Parallel()
	for _, mode := range []machine.Mode{machine.InProcess, machine.HostMediated} {
		for _, during := range []string{"attempt", "back-off"} {
			alike(t, `"timeout":"1h","retry":{"max_attempts":3,"initial_interval":"10m"}`, func(t *testing.T, d *definition.Document) {
				stopped := 0
				exec := &script{answers: answers{"a": func(ctx context.Context, req activities.Request) (any, error) {
					if during == "back-off" {
						return nil, &activities.Failure{Code: "C"}
					}
					defer func() { stopped++ }()
					return hang(ctx, req)
				}}}
				store := historymem.New()
				r := newRunner(t, store, graph.Options{Activities: exec, DefaultMode: mode, WaitLimit: time.Second})
				run := start(t, r, "r", d, nil)
				if mode == machine.HostMediated {
					if len(run.Pending) == 2 {
						run = submitSpan(t, r, run.Pending[0], "")
					}
					if during == "back-off" {
						run = submitSpan(t, r, run.Pending[0], "C")
					}
				}
				if wants := run.Pending[len(run.Pending)-1]; (wants.Kind == machine.WaitBackoff) != (during == "back-off") {
					t.Fatalf("pending %+v", wants)
				}
				run, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "r"})
				if err != nil {
					t.Fatal(err)
				}
				wantStatus(t, run, machine.Cancelled)
				calls, before := exec.count(), len(records(t, store, "r"))
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				if n := len(records(t, store, "r")); n != before || exec.count() != calls {
					t.Errorf("%d records and %d calls afterwards", n-before, exec.count()-calls)
				}
				if want := mode == machine.InProcess && during == "attempt"; (stopped == 1) != want {
					t.Errorf("%d attempts were stopped", stopped)
				}
			})
		}
	}
}

// The jitter of a back-off is that of the attempt, the same in a rebuilt run; runs that failed together come back apart.
func TestJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := workflow(t, "jitter", []string{startNode(),
			tool("a", `"retry":{"max_attempts":2,"initial_interval":"100s","jitter":1}`), endNode()}, "s a", "a e")
		fails := func(_ context.Context, req activities.Request) (any, error) {
			if req.Attempt == 1 {
				return nil, &activities.Failure{Code: "C"}
			}
			return object{}, nil
		}
		store := historymem.New()
		policy := definition.Retry{Initial: 100 * time.Second, Coefficient: 1, Jitter: 1}
		took := map[string]time.Duration{}
		for _, id := range []string{"r", "r2"} {
			r := newRunner(t, store, graph.Options{Activities: &script{answers: answers{"a": fails}}, WaitLimit: time.Hour})
			begun := time.Now()
			wantStatus(t, start(t, r, id, d, nil), machine.Completed)
			// Timers are kept in milliseconds.
			took[id] = time.Since(begun)
			if want := policy.DelayOf(2, id+":a#1.1"); (took[id] - want).Abs() > time.Millisecond {
				t.Errorf("%s came back after %v, want %v", id, took[id], want)
			}
		}
		if took["r"] == took["r2"] {
			t.Error("both came back at once")
		}
	})
}
