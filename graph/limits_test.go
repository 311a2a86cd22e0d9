package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// rounds is a workflow that goes on until somebody ends it, with a wait in each round.
func rounds(node string) (nodes, edges []string) {
	return []string{startNode(), node, `{"id":"sw","type":"switch","config":{"cases":[{"when":"true","target":"a"}],"default":"e"}}`, endNode()},
		[]string{"s a", "a sw"}
}

// limitOptions are options with one small limit each.
func limitOptions() map[problem.Code]graph.Options {
	return map[problem.Code]graph.Options{
		problem.StepBudgetExceeded: {MaxVisits: 40}, problem.RecordLimitExceeded: {MaxRecords: 200}, problem.ByteLimitExceeded: {MaxBytes: 60_000},
	}
}

// TestLimitsEndARun: a run that reaches a limit by itself fails with the limit's code.
func TestLimitsEndARun(t *testing.T) {
	t.Parallel()
	for code, o := range limitOptions() {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			o.Activities = &script{answers: map[string]func(context.Context, activities.Request) (any, error){
				"a": func(_ context.Context, req activities.Request) (any, error) {
					return object{fmt.Sprint("k", req.Visit): strings.Repeat("x", 200)}, nil
				},
			}}
			nodes, edges := rounds(tool("a"))
			run := start(t, newRunner(t, historymem.New(), o), "r", workflow(t, "loop", nodes, edges...), nil)
			if run.Status != machine.Failed || run.ErrorCode != string(code) || run.Warnings != nil {
				t.Errorf("the run is %s with %q, warnings %v", run.Status, run.ErrorCode, run.Warnings)
			}
			if run.Seq < 40 || run.Seq > 250 || code == problem.ByteLimitExceeded && run.Bytes > 80_000 {
				t.Errorf("it ended with %d records of %d bytes", run.Seq, run.Bytes)
			}
		})
	}
}

// TestLimitsAreAnnounced: from 80 % of a limit on, status warns, with the counts of whichever process is asked. What
// would take the run past the limits of its history is refused, and taken by a process with larger ones.
func TestLimitsAreAnnounced(t *testing.T) {
	t.Parallel()
	for code, o := range limitOptions() {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			store := historymem.New()
			o.DefaultMode = machine.HostMediated
			nodes, edges := rounds(tool("a"))
			run := start(t, newRunner(t, store, o), "r", workflow(t, "loop", nodes, edges...), nil)
			submit := func(o graph.Options, round int) (*view.Run, error) {
				return newRunner(t, store, o).SubmitActivity(t.Context(), graph.SubmitRequest{
					ExecutionID: "r", NodeID: "a", OK: true, Result: object{fmt.Sprintf("k%d", round): strings.Repeat("x", 200)},
				})
			}
			warned, round := false, 0
			var err error
			for before := run; ; round++ {
				if run, err = submit(o, round); err != nil {
					run = before
					break
				}
				if run.Status.Terminal() {
					break
				}
				before = run
				if warned && len(run.Warnings) == 0 {
					t.Errorf("round %d: no warning any more", round)
				}
				for _, w := range run.Warnings {
					warned = true
					if w.Code != code || w.Hint == "" || w.Used*100 < w.Limit*80 || !strings.Contains(w.Message, fmt.Sprint(w.Limit)) {
						t.Errorf("round %d: warned %+v", round, w)
					}
				}
			}
			if !warned {
				t.Error("nothing was announced")
			}
			if code == problem.StepBudgetExceeded {
				if err != nil || run.ErrorCode != string(code) {
					t.Errorf("the run is %s with %q, %v", run.Status, run.ErrorCode, err)
				}
				return
			}
			if !errors.Is(err, code) {
				t.Fatalf("round %d: got %v", round, err)
			}
			if after := status(t, newRunner(t, store, o), "r"); after.Seq != run.Seq || after.Status != machine.AwaitingActivity {
				t.Errorf("the refused call left the run %s at record %d of %d", after.Status, after.Seq, run.Seq)
			}
			if again, err := submit(graph.Options{}, round); err != nil || again.Seq <= run.Seq || again.Warnings != nil {
				t.Errorf("with a larger limit: %+v, %v", again, err)
			}
		})
	}
}

// TestPendingLimit: a block that would await more than the limit ends the run.
func TestPendingLimit(t *testing.T) {
	t.Parallel()
	wide := func(n int) ([]string, []string) {
		nodes, edges, entries := []string{startNode(), ""}, []string{"s p", "p e"}, []string{}
		for i := range n {
			id := fmt.Sprintf("a%d", i)
			nodes, edges, entries = append(nodes, tool(id)), append(edges, id+" e"), append(entries, id)
		}
		nodes[1] = fork("p", "all", entries...)
		return append(nodes, endNode()), edges
	}
	o := graph.Options{DefaultMode: machine.HostMediated, MaxPending: 10}
	store := historymem.New()
	for n, warns := range map[int]bool{7: false, 8: true, 10: true} {
		nodes, edges := wide(n)
		id := fmt.Sprint("r", n)
		start(t, newRunner(t, store, o), id, workflow(t, fmt.Sprint("wide", n), nodes, edges...), nil)
		run := status(t, newRunner(t, store, o), id)
		if len(run.Pending) != n || (len(run.Warnings) == 1) != warns {
			t.Errorf("%d of 10: %d pending, warnings %v", n, len(run.Pending), run.Warnings)
		}
		if warns && run.Warnings[0].Code != problem.PendingLimitExceeded {
			t.Errorf("warned %+v", run.Warnings[0])
		}
		run, err := newRunner(t, store, o).SubmitActivity(t.Context(), graph.SubmitRequest{
			ExecutionID: id, NodeID: "a0", Span: run.Pending[0].Span, OK: true, Result: object{"a": 1},
		})
		if err != nil || len(run.Pending) != n-1 || (len(run.Warnings) == 1) != (n-1 >= 8) {
			t.Errorf("%d of 10 after one: %v, warnings %v", n, err, run.Warnings)
		}
	}
	nodes, edges := wide(11)
	run := start(t, newRunner(t, store, o), "r11", workflow(t, "wide11", nodes, edges...), nil)
	if run.Status != machine.Failed || run.ErrorCode != string(problem.PendingLimitExceeded) {
		t.Errorf("the run is %s with %q", run.Status, run.ErrorCode)
	}
}

// TestACallPastALimitDoesNotSpoilTheRun: what a caller sends to a full run is refused, and taken once there is room.
func TestACallPastALimitDoesNotSpoilTheRun(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	nodes, edges := rounds(signalWait("a", "go"))
	start(t, newRunner(t, store, graph.Options{}), "r", workflow(t, "loop", nodes, edges...), nil)
	before := status(t, newRunner(t, store, graph.Options{}), "r")
	send := func(o graph.Options, n int) (*view.Run, error) {
		return newRunner(t, store, o).Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Payload: object{"text": strings.Repeat("x", n)}})
	}
	for _, c := range []struct {
		options graph.Options
		bytes   int
		code    problem.Code
	}{
		{graph.Options{MaxBytes: before.Bytes + 5000}, 5000, problem.ByteLimitExceeded},
		{graph.Options{MaxBytes: before.Bytes}, 0, problem.ByteLimitExceeded},
		{graph.Options{MaxRecords: before.Seq}, 0, problem.RecordLimitExceeded},
		{graph.Options{MaxRecords: before.Seq + 4}, 0, problem.RecordLimitExceeded}, // there is room for the signal, not for what follows
	} {
		_, err := send(c.options, c.bytes)
		p, _ := problem.As(err)
		if !errors.Is(err, c.code) || p.Hint == "" || p.At.ExecutionID != "r" {
			t.Errorf("got %v, want %s", err, c.code)
		}
		if after := status(t, newRunner(t, store, c.options), "r"); after.Seq != before.Seq || after.Status != machine.AwaitingSignal {
			t.Errorf("the run is %s at record %d", after.Status, after.Seq)
		}
	}
	run, err := send(graph.Options{}, 5000)
	if err != nil || run.Status != machine.AwaitingSignal || run.Seq <= before.Seq {
		t.Errorf("got %+v, %v", run, err)
	}
}

// TestARepeatedCallIsKnownAtTheLimit sends the last call that a run had room for again: it was taken, and the answer must
// not say that nothing was recorded.
func TestARepeatedCallIsKnownAtTheLimit(t *testing.T) {
	t.Parallel()
	d := linear(t, "lin", "a", "b")
	r, _ := host(t, graph.Options{})
	start(t, r, "r", d, nil)
	most, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, IdempotencyKey: "r:a#1.1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]graph.Options{"records": {MaxRecords: most.Seq}, "bytes": {MaxBytes: most.Bytes}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, store := host(t, o)
			start(t, r, "r", d, nil)
			send := func(node, key string) (*view.Run, error) {
				return r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: node, OK: true, IdempotencyKey: key})
			}
			if run, err := send("a", "r:a#1.1"); err != nil || run.Repeated {
				t.Fatalf("%+v, %v", run, err)
			}
			unchanged(t, store, func() {
				for _, key := range []string{"r:a#1.1", ""} {
					if run, err := send("a", key); err != nil || !run.Repeated || len(run.Pending) != 1 || run.Pending[0].NodeID != "b" {
						t.Errorf("again with key %q: %+v, %v", key, run, err)
					}
				}
				if _, err := send("b", "r:b#1.1"); !errors.Is(err, problem.RecordLimitExceeded) && !errors.Is(err, problem.ByteLimitExceeded) {
					t.Errorf("the next one: %v", err)
				}
			})
		})
	}
}

// TestAStartThatIsTooLargeIsRefused: a run that could take nothing any more does not begin, here and as a subworkflow.
func TestAStartThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	d := linear(t, "lin", "a", "b")
	for name, c := range map[string]struct {
		limit int64
		input int
		fits  bool
	}{
		"larger than the limit":          {20 << 10, 30_000, false},
		"larger with what goes along":    {20 << 10, 20_300, false},
		"as much as fits":                {20 << 10, 18_000, true},
		"larger than a whole record":     {90 << 10, 100_000, false},
		"fits, larger than whole record": {120 << 10, 100_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, store := host(t, graph.Options{MaxBytes: c.limit})
			run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Input: object{"x": strings.Repeat("x", c.input)}})
			if c.fits {
				if err != nil || run.Bytes > c.limit {
					t.Fatalf("%+v, %v", run, err)
				}
				return
			}
			if p := wantCode(t, err, problem.ByteLimitExceeded); !strings.Contains(p.Hint, "Nothing was started") || p.At.ExecutionID != "r" {
				t.Errorf("%+v", p)
			}
			if _, err := store.Execution(t.Context(), "r"); !errors.Is(err, problem.ExecutionNotFound) {
				t.Errorf("something was recorded: %v", err)
			}
			if run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d}); err != nil || len(run.Pending) != 1 {
				t.Errorf("a smaller start under the same id: %+v, %v", run, err)
			}
		})
	}
}

// TestACallMayFillARunToItsLimit: what is recorded with a result is weighed, to the byte.
func TestACallMayFillARunToItsLimit(t *testing.T) {
	t.Parallel()
	d := linear(t, "lin", "a", "b")
	r, _ := host(t, graph.Options{})
	start(t, r, "r", d, nil)
	result := object{"text": strings.Repeat("x", 500)}
	most := submit(t, r, "r", "a", result).Bytes
	for _, limit := range []int64{most, most - 1} {
		r, store := host(t, graph.Options{MaxBytes: limit})
		start(t, r, "r", d, nil)
		before := records(t, store, "r")
		run, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, Result: result})
		if limit == most {
			if err != nil || run.Bytes != most {
				t.Errorf("up to the limit: %+v, %v", run, err)
			}
			continue
		}
		p := wantCode(t, err, problem.ByteLimitExceeded)
		if !strings.Contains(p.Message, fmt.Sprint(limit)) || !strings.Contains(p.Hint, "the run is still waiting") {
			t.Errorf("%+v", p)
		}
		if after := records(t, store, "r"); len(after) != len(before) {
			t.Errorf("%d records became %d", len(before), len(after))
		}
		if run := submit(t, r, "r", "a", object{"text": "short"}); run.Bytes > limit || len(run.Pending) != 1 {
			t.Errorf("a shorter one: %+v", run)
		}
	}
}
