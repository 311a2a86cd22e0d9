package graph_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func TestWithoutExecutorsNothingIsFaked(t *testing.T) {
	t.Parallel()
	r := newRunner(t, historymem.New(), graph.Options{})
	run := start(t, r, "a", workflow(t, "lin", []string{startNode(), tool("a", `"retry":{"max_attempts":5}`), endNode()}, "s a", "a e"), nil)
	wantStatus(t, run, machine.Failed)
	if run.ErrorCode != string(problem.ExecutorNotConfigured) || !strings.Contains(run.Error, "host_mediated") {
		t.Errorf("%s %q", run.ErrorCode, run.Error)
	}
	run = start(t, r, "d", workflow(t, "del", []string{startNode(), delegateNode("d"), endNode()}, "s d", "d e"), nil)
	wantStatus(t, run, machine.Failed)
	if run.ErrorCode != string(problem.DelegateProtocolUnsupported) || !strings.Contains(run.Error, "a2a") {
		t.Errorf("%s %q", run.ErrorCode, run.Error)
	}
}

func TestOutcomesOfExecutors(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		answer   func() (any, error)
		code     string
		attempts int
		state    any
	}{
		"object":        {func() (any, error) { return object{"x": 1}, nil }, "", 1, object{"x": 1}},
		"struct":        {func() (any, error) { return struct{ X int }{2}, nil }, "", 1, object{"X": 2}},
		"scalar":        {func() (any, error) { return 7, nil }, "", 1, object{"value": 7}},
		"nothing":       {func() (any, error) { return nil, nil }, "", 1, object{}},
		"NaN":           {func() (any, error) { return object{"x": math.NaN()}, nil }, "ACTIVITY_OUTPUT_INVALID", 2, nil},
		"levels":        {func() (any, error) { return nested(jsonvalue.MaxDepth + 1), nil }, "ACTIVITY_OUTPUT_INVALID", 2, nil},
		"large":         {func() (any, error) { return object{"x": big}, nil }, "ACTIVITY_OUTPUT_TOO_LARGE", 2, nil},
		"plain error":   {func() (any, error) { return nil, errors.New("oops") }, "ACTIVITY_FAILED", 2, nil},
		"failure":       {func() (any, error) { return nil, &activities.Failure{Code: "C", Message: "m"} }, "C", 2, nil},
		"wrapped":       {func() (any, error) { return nil, fmt.Errorf("w: %w", &activities.Failure{Code: "C"}) }, "C", 2, nil},
		"pointless":     {func() (any, error) { return nil, &activities.Failure{Code: "C", Retryable: activities.RetryPointless} }, "C", 1, nil},
		"not retryable": {func() (any, error) { return nil, &activities.Failure{Code: "NEVER"} }, "NEVER", 1, nil},
		"problem":       {func() (any, error) { return nil, problem.New(problem.HandlerNotFound, "none") }, "HANDLER_NOT_FOUND", 2, nil},
		"W-21 panic":    {func() (any, error) { panic("ouch") }, "ACTIVITY_EXECUTOR_PANIC", 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exec := &script{answers: answers{"a": func(context.Context, activities.Request) (any, error) { return c.answer() }}}
			store := historymem.New()
			r := newRunner(t, store, graph.Options{Activities: exec, MaxDocumentBytes: 4000})
			d := workflow(t, "lin", []string{startNode(),
				tool("a", `"retry":{"max_attempts":2,"non_retryable_errors":["NEVER"]}`), endNode()}, "s a", "a e")
			run := start(t, r, "r", d, nil)
			if run.ErrorCode != c.code || exec.count() != c.attempts {
				t.Errorf("code %q after %d attempts, want %q after %d (%s)", run.ErrorCode, exec.count(), c.code, c.attempts, run.Error)
			}
			if c.state != nil && !sameJSON(run.FinalState, c.state) {
				t.Errorf("state %v", run.FinalState)
			}
			if n := count(records(t, store, "r"), history.ActivityRequested); n != c.attempts {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestRetryAfterIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		exec := &script{answers: answers{"a": func(_ context.Context, req activities.Request) (any, error) {
			if req.Attempt == 1 {
				return nil, &activities.Failure{Code: "C", RetryAfter: 7 * time.Second}
			}
			return object{"attempt": req.Attempt}, nil
		}}}
		r := newRunner(t, historymem.New(), graph.Options{Activities: exec})
		begun := time.Now()
		run := start(t, r, "r", workflow(t, "lin", []string{startNode(), tool("a", `"retry":{"max_attempts":2}`), endNode()}, "s a", "a e"), nil)
		wantStatus(t, run, machine.Completed)
		if time.Since(begun) != 7*time.Second || !slices.Equal(exec.keys(), []string{"r:a#1.1", "r:a#1.2"}) {
			t.Errorf("after %s: %v", time.Since(begun), exec.keys())
		}
	})
}

// What a failed attempt has used up is recorded beside its error, also where it was the engine that refused its output.
func TestUsageOfFailedAttempts(t *testing.T) {
	t.Parallel()
	usage := object{"total_tokens": 7}
	exec := activities.ExecutorFunc(func(_ context.Context, req activities.Request) (activities.Result, error) {
		if req.Attempt == 1 {
			return activities.Result{}, &activities.Failure{Code: "C", Usage: usage}
		}
		return activities.Result{Output: math.NaN(), Usage: usage}, nil
	})
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: exec})
	start(t, r, "r", workflow(t, "lin", []string{startNode(), tool("a", `"retry":{"max_attempts":2}`), endNode()}, "s a", "a e"), nil)
	failed := 0
	for _, record := range records(t, store, "r") {
		if record.Name != history.ActivityFailed {
			continue
		}
		if failed++; !sameJSON(record.Payload.Usage, usage) {
			t.Errorf("attempt %d: usage %v", failed, record.Payload.Usage)
		}
	}
	if failed != 2 {
		t.Errorf("%d attempts failed", failed)
	}
}

// TestW38_ExecutorsGetACopyOfTheState changes what it was given.
func TestW38_ExecutorsGetACopyOfTheState(t *testing.T) {
	t.Parallel()
	exec := &script{answers: answers{"a": func(_ context.Context, req activities.Request) (any, error) {
		req.State()["o"].(object)["x"] = "changed"
		return object{"seen": req.State()["o"].(object)["x"]}, nil
	}}}
	r := newRunner(t, historymem.New(), graph.Options{Activities: exec})
	run := start(t, r, "r", linear(t, "lin", "a"), object{"o": object{"x": 1}})
	if !sameJSON(run.FinalState, object{"o": object{"x": 1}, "seen": 1}) {
		t.Errorf("state %v", run.FinalState)
	}
}

func TestRequestSaysEverything(t *testing.T) {
	t.Parallel()
	var got activities.Request
	exec := &script{answers: answers{"a": func(ctx context.Context, req activities.Request) (any, error) {
		got = req
		req.Heartbeat(object{"p": 1})
		if d, ok := ctx.Deadline(); !ok || time.Until(d) > time.Minute {
			return nil, errors.New("no deadline")
		}
		return nil, nil
	}}}
	r := newRunner(t, historymem.New(), graph.Options{Activities: exec})
	d := workflow(t, "par", []string{startNode(), fork("p", "all", "a"), tool("a", `"timeout":"1m"`, `"metadata":{"m":1}`), endNode()}, "s p", "p e", "a e")
	wantStatus(t, start(t, r, "r", d, object{"in": 1}), machine.Completed)
	if got.ExecutionID != "r" || got.NodeID != "a" || got.NodeType != "tool_call" || got.Config["tool"] != "a" || got.Metadata["m"] != 1.0 ||
		got.Visit != 1 || got.Attempt != 1 || got.IdempotencyKey != "r:a#1.1" || got.Deadline.IsZero() || !sameJSON(got.State(), object{"in": 1}) ||
		*got.Branch != (activities.Branch{ParallelNodeID: "p", JoinTargetID: "e", Name: "b_a", EntryNodeID: "a"}) {
		t.Errorf("request %+v", got)
	}
}

func TestDelegates(t *testing.T) {
	t.Parallel()
	var got activities.Request
	r := newRunner(t, historymem.New(), graph.Options{Delegates: activities.ExecutorFunc(func(_ context.Context, req activities.Request) (activities.Result, error) {
		got = req
		if req.Attempt == 1 {
			return activities.Result{}, &activities.Failure{Code: "A2A_PROVIDER_ERROR"}
		}
		return activities.Result{Output: object{"patch": "p"}, ExternalTaskID: "t9"}, nil
	})})
	d := workflow(t, "del", []string{startNode(), delegateNode("d", `"retry":{"max_attempts":2}`), endNode()}, "s d", "d e")
	run := start(t, r, "r", d, nil)
	wantStatus(t, run, machine.Completed)
	if got.AgentID != "coder" || got.Protocol != "a2a" || got.Input["task"] != "do" || got.CorrelationID != "r:delegate:d" ||
		got.IdempotencyKey != "r:d#1.2" || got.Attempt != 2 {
		t.Errorf("request %+v", got)
	}
	if run.DelegateCorrelationID != "r:delegate:d" {
		t.Errorf("run %+v", run)
	}
}

// TestW44_BranchesRunConcurrently sums what takes time, and TestW50: a timed-out attempt is stopped before the next.
func TestW44_BranchesRunConcurrently(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		exec := &script{answers: answers{"a": after(3*time.Second, object{"a": 1}), "b": after(2*time.Second, object{"b": 1}), "c": after(time.Second, object{"c": 1})}}
		d := workflow(t, "par", []string{startNode(), fork("p", "all", "a", "b", "c"), tool("a"), tool("b"), tool("c"), endNode()},
			"s p", "p e", "a e", "b e", "c e")
		for _, order := range []machine.BranchOrder{machine.Concurrent, machine.Sequential} {
			store := historymem.New()
			r := newRunner(t, store, graph.Options{Activities: exec, Branches: order})
			begun := time.Now()
			wantStatus(t, start(t, r, "r", d, nil), machine.Completed)
			want := map[machine.BranchOrder]time.Duration{machine.Concurrent: 3 * time.Second, machine.Sequential: 6 * time.Second}[order]
			if took := time.Since(begun); took != want {
				t.Errorf("%s took %s", order, took)
			}
			commands := names(records(t, store, "r"), history.Command)
			if got := strings.Join(commands[4:10], " "); got != "ScheduleNode(a) CompleteNode(a) ScheduleNode(b) CompleteNode(b) ScheduleNode(c) CompleteNode(c)" {
				t.Errorf("%s commands %s", order, got)
			}
		}
	})
}

func TestW50_ATimedOutExecutorIsStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := 0, 0
		exec := &script{answers: answers{"a": func(ctx context.Context, _ activities.Request) (any, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			defer func() { mu.Lock(); running--; mu.Unlock() }()
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), problem.Timeout) {
				t.Errorf("cause %v", context.Cause(ctx))
			}
			return nil, ctx.Err()
		}}}
		store := historymem.New()
		r := newRunner(t, store, graph.Options{Activities: exec})
		d := workflow(t, "lin", []string{startNode(), tool("a", `"timeout":"2s"`, `"retry":{"max_attempts":3,"initial_interval":"1s"}`), endNode()}, "s a", "a e")
		begun := time.Now()
		run := start(t, r, "r", d, nil)
		wantStatus(t, run, machine.Failed)
		if run.ErrorCode != string(problem.Timeout) || time.Since(begun) != 8*time.Second || most != 1 || exec.count() != 3 {
			t.Errorf("%s after %s, %d at once, %d calls", run.ErrorCode, time.Since(begun), most, exec.count())
		}
		if n := count(records(t, store, "r"), history.ActivityFailed); n != 3 {
			t.Errorf("%d failures", n)
		}
	})
}

// TestLateOutcomesAreDropped has an executor that ignores its context.
// TestTheDeadlineHasOneCode: an executor with a name of its own for a missed deadline may be quicker than the timer, which
// here never fires.
func TestTheDeadlineHasOneCode(t *testing.T) {
	t.Parallel()
	still := time.Now()
	exec := &script{answers: answers{"a": func(ctx context.Context, _ activities.Request) (any, error) {
		<-ctx.Done()
		return nil, &activities.Failure{Code: string(problem.ActivityTimeout), Message: "no answer", Err: ctx.Err()}
	}}}
	r := newRunner(t, historymem.New(), graph.Options{Activities: exec, Now: func() time.Time { return still }})
	run := start(t, r, "r", workflow(t, "lin", []string{startNode(), tool("a", `"timeout":"20ms"`), endNode()}, "s a", "a e"), nil)
	if run.Status != machine.Failed || run.ErrorCode != string(problem.Timeout) || !strings.Contains(run.Error, "no answer") {
		t.Errorf("%s %s: %s", run.Status, run.ErrorCode, run.Error)
	}
}

func TestLateOutcomesAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		exec := &script{answers: answers{"a": func(context.Context, activities.Request) (any, error) {
			time.Sleep(10 * time.Second)
			return object{"late": true}, nil
		}}}
		store := historymem.New()
		r := newRunner(t, store, graph.Options{Activities: exec})
		d := workflow(t, "lin", []string{startNode(), tool("a", `"timeout":"2s"`), endNode()}, "s a", "a e")
		begun := time.Now()
		run := start(t, r, "r", d, nil)
		wantStatus(t, run, machine.Failed)
		if time.Since(begun) != 2*time.Second {
			t.Errorf("after %s", time.Since(begun))
		}
		seq := run.Seq
		time.Sleep(time.Minute)
		if run := status(t, r, "r"); run.Seq != seq {
			t.Errorf("the late outcome was recorded")
		}
	})
}

// immediate answers at once and says so.
type immediate struct{ script }

func (*immediate) Capabilities(activities.Node) activities.Capabilities {
	return activities.Capabilities{Immediate: true}
}

func TestImmediateExecutorsAreCalledInBranchOrder(t *testing.T) {
	t.Parallel()
	exec := &immediate{}
	r := newRunner(t, historymem.New(), graph.Options{Activities: exec})
	d := workflow(t, "par", []string{startNode(), fork("p", "all", "a", "b", "c"), tool("a"), tool("a2"), tool("b"), tool("c"), endNode()},
		"s p", "p e", "a a2", "a2 e", "b e", "c e")
	for i := range 20 {
		exec.calls = nil
		wantStatus(t, start(t, r, fmt.Sprint(i), d, nil), machine.Completed)
		var nodes []string
		for _, c := range exec.calls {
			nodes = append(nodes, c.NodeID)
		}
		if got := strings.Join(nodes, " "); got != "a b c a2" {
			t.Fatalf("called %s", got)
		}
	}
}

// TestASuccessAfterTheDeadlineIsLate: an executor that does not stop when its time is over has no outcome any more, also
// where the process was away and the timer of the deadline has not fired yet.
func TestASuccessAfterTheDeadlineIsLate(t *testing.T) {
	t.Parallel()
	var away atomic.Int64
	exec := activities.ExecutorFunc(func(context.Context, activities.Request) (activities.Result, error) {
		away.Store(int64(time.Hour)) // the clock goes on, timers do not
		return activities.Result{Output: object{"a": 1}}, nil
	})
	r := newRunner(t, historymem.New(), graph.Options{Activities: exec, Now: func() time.Time { return time.Now().Add(time.Duration(away.Load())) }})
	run := start(t, r, "r", workflow(t, "w", []string{startNode(), tool("a", `"timeout":"1m"`), endNode()}, "s a", "a e"), nil)
	wantStatus(t, run, machine.Failed)
	if run.ErrorCode != string(problem.Timeout) {
		t.Errorf("failed with %s %s", run.ErrorCode, run.Error)
	}
}
