package graph_test

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// wrong is a failure that asks for a repair.
func wrong(repair map[string]any) *activities.Failure {
	return &activities.Failure{Code: "WRONG", Message: "wrong", Repair: repair}
}

// repairs tells of each request whether it had a repair in hand.
func (s *script) repairs() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rs []map[string]any
	for _, c := range s.calls {
		rs = append(rs, c.Repair)
	}
	return rs
}

// TestRepairIsAnAttempt: an embedder's executor asks for a repair, and gets it with what it gave, as plain JSON that is its
// own to change.
func TestRepairIsAnAttempt(t *testing.T) {
	t.Parallel()
	kept := object{"half": []any{"a", 1}}
	exec := &script{answers: answers{"a": func(_ context.Context, req activities.Request) (any, error) {
		if req.Repair == nil {
			return nil, wrong(kept)
		}
		half := req.Repair["half"].([]any)
		out := object{"half": half[0], "n": half[1]}
		half[0] = "changed"
		return out, nil
	}}}
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: exec})
	run := start(t, r, "r", linear(t, "lin", "a"), nil)
	wantStatus(t, run, machine.Completed)
	if !sameJSON(run.FinalState, object{"half": "a", "n": 1.0}) {
		t.Errorf("state %v", run.FinalState)
	}
	kept["half"] = "changed too"
	var got []string
	for _, rec := range records(t, store, "r") {
		p := rec.Payload
		switch rec.Name {
		case history.ActivityFailed:
			if p.Attempt != 1 || p.Code != "WRONG" || !p.WillRetry || !sameJSON(p.Repair, object{"half": []any{"a", 1.0}}) {
				t.Errorf("recorded %+v", p)
			}
			got = append(got, string(rec.Name))
		case history.ActivityRequested, history.ActivityCompleted:
			got = append(got, string(rec.Name))
		}
	}
	if want := []string{"ActivityRequested", "ActivityFailed", "ActivityRequested", "ActivityCompleted"}; !slices.Equal(got, want) {
		t.Errorf("recorded %v, want %v", got, want)
	}
}

// TestRepairsThatAreNotGranted counts the attempts, and those with a repair in hand.
func TestRepairsThatAreNotGranted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		node     string
		failure  func() error
		attempts int
		repairs  int
	}{
		"no policy":           {``, func() error { return wrong(object{"x": 1}) }, 2, 1},
		"nothing in hand":     {``, func() error { return wrong(object{}) }, 2, 1},
		"one attempt":         {`"retry":{"max_attempts":1}`, func() error { return wrong(object{"x": 1}) }, 2, 1},
		"three attempts":      {`"retry":{"max_attempts":3}`, func() error { return wrong(object{"x": 1}) }, 3, 1},
		"named by the policy": {`"retry":{"max_attempts":3,"non_retryable_errors":["WRONG"]}`, func() error { return wrong(object{"x": 1}) }, 1, 0},
		"pointless": {`"retry":{"max_attempts":3}`, func() error {
			f := wrong(object{"x": 1})
			f.Retryable = activities.RetryPointless
			return f
		}, 2, 1},
		"no JSON":   {``, func() error { return wrong(object{"x": math.NaN()}) }, 1, 0},
		"too large": {``, func() error { return wrong(object{"x": strings.Repeat("x", 5000)}) }, 1, 0},
		"as large as an output": {``, func() error {
			return wrong(object{"x": strings.Repeat("x", 3900)})
		}, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exec := &script{answers: answers{"a": func(context.Context, activities.Request) (any, error) { return nil, c.failure() }}}
			r := newRunner(t, historymem.New(), graph.Options{Activities: exec, MaxDocumentBytes: 4000})
			node := tool("a")
			if c.node != "" {
				node = tool("a", c.node)
			}
			run := start(t, r, "r", workflow(t, "lin", []string{startNode(), node, endNode()}, "s a", "a e"), nil)
			wantStatus(t, run, machine.Failed)
			repairs := 0
			for i, repair := range exec.repairs() {
				if repair == nil {
					continue
				}
				if repairs++; i != 1 {
					t.Errorf("attempt %d has %v in hand", i+1, repair)
				}
			}
			if exec.count() != c.attempts || repairs != c.repairs || run.ErrorCode != "WRONG" {
				t.Errorf("%d attempts, %d repairs, code %s; want %d and %d", exec.count(), repairs, run.ErrorCode, c.attempts, c.repairs)
			}
		})
	}
}

// TestRepairIsAtOnce: the policy's back-off does not hold for it, what the executor asks for does.
func TestRepairIsAtOnce(t *testing.T) {
	t.Parallel()
	for _, pause := range []time.Duration{0, 7 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			exec := &script{answers: answers{"a": func(_ context.Context, req activities.Request) (any, error) {
				switch {
				case req.Attempt == 1:
					f := wrong(object{"x": 1})
					f.RetryAfter = pause
					return nil, f
				case req.Attempt == 2:
					return nil, wrong(object{"x": 2})
				}
				return nil, nil
			}}}
			r := newRunner(t, historymem.New(), graph.Options{Activities: exec})
			begun := time.Now()
			d := workflow(t, "lin", []string{startNode(), tool("a", `"retry":{"max_attempts":3,"initial_interval":"1m"}`), endNode()}, "s a", "a e")
			start(t, r, "r", d, nil)
			wantStatus(t, settled(t, r, "r"), machine.Completed)
			if took := time.Since(begun); took != pause+time.Minute {
				t.Errorf("took %s with a pause of %s", took, pause)
			}
			if rs := exec.repairs(); len(rs) != 3 || rs[0] != nil || rs[1] == nil || rs[2] != nil {
				t.Errorf("in hand: %v", rs)
			}
		})
	}
}

// TestRepairSurvivesItsProcess: the repair that a process did not end is performed again by the next one, under the same
// key and with the same in hand, however large that is.
func TestRepairSurvivesItsProcess(t *testing.T) {
	t.Parallel()
	store, err := historysql.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), historysql.Options{Synchronous: historysql.Normal})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	large := object{"answer": strings.Repeat("x", 200_000), "$blob": "a name that the store has too"}
	entered := make(chan struct{})
	first := &script{answers: answers{"a": func(ctx context.Context, req activities.Request) (any, error) {
		if req.Repair == nil {
			return nil, wrong(large)
		}
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	}}}
	r, err := graph.New(store, graph.Options{Activities: first})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "lin", "a"), Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
		t.Fatal(err)
	}
	<-entered
	if pending := status(t, r, "r").Pending; len(pending) != 1 || pending[0].Attempt != 2 || pending[0].LastError != "wrong" || pending[0].LastCode != "WRONG" {
		t.Errorf("pending %+v", pending)
	}
	closeRunner(t, r)

	second := &script{answers: answers{"a": func(_ context.Context, req activities.Request) (any, error) {
		return object{"same": sameJSON(req.Repair, large)}, nil
	}}}
	r = newRunner(t, store, graph.Options{Activities: second})
	if _, err := r.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
		t.Fatal(err)
	}
	run := settled(t, r, "r")
	wantStatus(t, run, machine.Completed)
	if !sameJSON(run.FinalState, object{"same": true}) {
		t.Errorf("state %v", run.FinalState)
	}
	if keys := slices.Concat(first.keys(), second.keys()); !slices.Equal(keys, []string{"r:a#1.1", "r:a#1.2", "r:a#1.2"}) {
		t.Errorf("keys %v", keys)
	}

	// A fork from the failure on, and one from the request on, repair too.
	for _, rec := range records(t, store, "r") {
		if rec.Name != history.ActivityFailed && (rec.Name != history.ActivityRequested || rec.Payload.Attempt != 2) {
			continue
		}
		run, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", Seq: rec.Seq})
		if err != nil {
			t.Fatal(err)
		}
		if wantStatus(t, run, machine.Completed); !sameJSON(run.FinalState, object{"same": true}) {
			t.Errorf("forked at %s: %v", rec.Name, run.FinalState)
		}
	}
	if n := second.count(); n != 3 {
		t.Errorf("%d attempts in the second process, want one in the run and in each fork", n)
	}
}

// TestCancelDuringARepair: the executor is stopped, and nothing more is recorded of the repair.
func TestCancelDuringARepair(t *testing.T) {
	t.Parallel()
	entered, stopped := make(chan struct{}), make(chan struct{})
	exec := &script{answers: answers{"a": func(ctx context.Context, req activities.Request) (any, error) {
		if req.Repair == nil {
			return nil, wrong(object{"x": 1})
		}
		close(entered)
		<-ctx.Done()
		close(stopped)
		return nil, wrong(object{"x": 2})
	}}}
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: exec})
	if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "lin", "a"), Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
		t.Fatal(err)
	}
	<-entered
	wantStatus(t, cancel(t, r, "r", "enough"), machine.Cancelled)
	<-stopped
	if n := count(records(t, store, "r"), history.ActivityFailed); n != 1 {
		t.Errorf("%d failures are recorded", n)
	}
}

// TestARepairHasADeadlineOfItsOwn: it is that of an attempt, and one that is missed is a failure of the policy.
func TestARepairHasADeadlineOfItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		exec := &script{answers: answers{"a": func(ctx context.Context, req activities.Request) (any, error) {
			if req.Repair == nil {
				time.Sleep(8 * time.Second)
				return nil, wrong(object{"x": 1})
			}
			return after(time.Minute, nil)(ctx, req)
		}}}
		r := newRunner(t, historymem.New(), graph.Options{Activities: exec})
		begun := time.Now()
		run := start(t, r, "r", workflow(t, "lin", []string{startNode(), tool("a", `"timeout":"10s"`), endNode()}, "s a", "a e"), nil)
		wantStatus(t, run, machine.Failed)
		if run.ErrorCode != "TIMEOUT" || time.Since(begun) != 18*time.Second {
			t.Errorf("%s after %s", run.ErrorCode, time.Since(begun))
		}
	})
}
