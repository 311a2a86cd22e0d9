package graph_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// TestRepeatedCalls sends calls again whose answers were lost: at once, after the run has gone on, after it has ended,
// and from another process. Another content under the same name is refused. Nothing is recorded twice.
func TestRepeatedCalls(t *testing.T) {
	t.Parallel()
	child := linear(t, "child", "c:1")
	nodes := []string{
		startNode(), tool("a"), interrupt("i"), signalWait("g", "go"), fork("p", "all", "b1", "b2", "d", "v"), tool("b1"), tool("b2"),
		delegateNode("d"), subworkflow("v", "urn:child"), tool("last"), endNode(),
	}
	d := workflow(t, "calls", nodes, "s a", "a i", "i g", "g p", "p last", "b1 last", "b2 last", "d last", "v last", "last e")
	submitting := func(id, node string, keyed bool, result object) func(context.Context, *graph.Runner, object) (*view.Run, error) {
		return func(ctx context.Context, r *graph.Runner, other object) (*view.Run, error) {
			req := graph.SubmitRequest{ExecutionID: "r", NodeID: node, OK: true, Result: result}
			if other != nil {
				req.Result = other
			}
			if node == "d" {
				req.CorrelationID = "r:delegate:d"
			}
			if keyed {
				req.IdempotencyKey = id + ":" + node + "#1.1"
			}
			if strings.HasPrefix(node, "b") || node == "d" {
				req.Span = &history.ParallelSpan{ParallelNodeID: "p", JoinTargetID: "last", BranchName: "b_" + node, BranchEntryNodeID: node}
			}
			return r.SubmitActivity(ctx, req)
		}
	}
	calls := []struct {
		name string
		call func(context.Context, *graph.Runner, object) (*view.Run, error)
		code problem.Code
	}{
		{"submit", submitting("r", "a", true, object{"a": 1}), problem.SubmitNotAwaiting},
		{"resume", func(ctx context.Context, r *graph.Runner, other object) (*view.Run, error) {
			req := graph.ResumeRequest{ExecutionID: "r", InterruptID: "r:i#1", Payload: object{"ok": true}}
			if other != nil {
				req.Payload = object{"ok": false}
			}
			return r.Resume(ctx, req)
		}, problem.InvalidResumePayload},
		{"signal", func(ctx context.Context, r *graph.Runner, other object) (*view.Run, error) {
			req := graph.SignalRequest{ExecutionID: "r", Name: "go", IdempotencyKey: "mail 7", Payload: object{"by": "x"}}
			if other != nil {
				req.Payload = other
			}
			return r.Signal(ctx, req)
		}, problem.SignalValidationError},
		{"submit in a branch", submitting("r", "b2", true, nil), problem.SubmitNotAwaiting},
		{"submit in a branch without a key", submitting("r", "b1", false, object{"b1": []any{1}}), ""},
		{"delegate", submitting("r", "d", true, object{"patch": "p"}), problem.SubmitNotAwaiting},
		{"submit in a subworkflow", submitting("r:sub:v", "c:1", true, object{"c": 1}), problem.SubmitNotAwaiting},
		{"last", submitting("r", "last", true, nil), problem.SubmitNotAwaiting},
	}
	store := historymem.New()
	process := func() *graph.Runner {
		r := newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated})
		register(t, r, "urn:child", child)
		return r
	}
	r := process()
	start(t, r, "r", d, nil)
	for i, c := range calls {
		first, err := c.call(t.Context(), r, nil)
		if err != nil || first.Repeated {
			t.Fatalf("%s: %+v, %v", c.name, first, err)
		}
		for j, before := range calls[:i+1] {
			for _, again := range []*graph.Runner{r, process()} {
				name := fmt.Sprintf("%s again after %s", before.name, c.name)
				run, err := before.call(t.Context(), again, nil)
				if err != nil || !run.Repeated || run.Seq != first.Seq || run.Status != first.Status || len(run.Pending) != len(first.Pending) {
					t.Errorf("%s: %+v, %v", name, run, err)
				}
				_, err = before.call(t.Context(), again, object{"other": j})
				if err == nil {
					t.Errorf("%s with another content: taken", name)
				} else if before.code != "" {
					wantCode(t, err, before.code)
				}
			}
		}
	}
	wantStatus(t, status(t, r, "r"), machine.Completed)
	rows := records(t, store, "r")
	if got := [...]int{count(rows, history.ActivityCompleted), count(rows, history.InterruptResumed), count(rows, history.SignalReceived)}; got != [...]int{5, 1, 1} {
		t.Errorf("recorded %v", got)
	}
}

// TestASignalsKeyCountsInALoop holds that a signal that is sent again does not end the next wait for its name.
func TestASignalsKeyCountsInALoop(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r, other := newRunner(t, store, graph.Options{}), newRunner(t, store, graph.Options{})
	d := workflowWith(t, "loop", `"state_schema":{"type":"object","properties":{"got":{"type":"array","reducer":"append"}}}`,
		[]string{startNode(), signalWait("w", "go"), `{"id":"c","type":"switch","config":{"cases":[{"when":"(.got | length) < 3","target":"w"}],"default":"e"}}`, endNode()},
		"s w", "w c")
	start(t, r, "r", d, nil)
	send := func(r *graph.Runner, key string, n int) (*view.Run, error) {
		return r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", IdempotencyKey: key, Payload: object{"got": n}})
	}
	for n, key := range []string{"x", "y", "z"} {
		run, err := send(r, key, n)
		if err != nil || run.Repeated {
			t.Fatalf("%s: %+v, %v", key, run, err)
		}
		for _, again := range []*graph.Runner{r, other} {
			if run, err := send(again, key, n); err != nil || !run.Repeated {
				t.Errorf("%s again: %+v, %v", key, run, err)
			}
			_, err := send(again, key, n+10)
			wantCode(t, err, problem.SignalValidationError)
		}
	}
	if run := status(t, other, "r"); !sameJSON(run.FinalState, object{"got": []any{0, 1, 2}}) {
		t.Errorf("%+v", run)
	}
}

// TestASignalsKeyCountsInAFamily holds that a signal that is sent again is taken by no other run of the family: neither
// by a subworkflow that comes up after the wait that took it, nor by the parent, nor by a subworkflow beside.
func TestASignalsKeyCountsInAFamily(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	register(t, r, "urn:child", workflow(t, "child", []string{startNode(), signalWait("w", "go"), endNode()}, "s w", "w e"))
	d := workflow(t, "family", []string{
		startNode(), signalWait("a", "go"), subworkflow("v", "urn:child"), signalWait("b", "go"),
		fork("p", "all", "x", "y"), subworkflow("x", "urn:child"), subworkflow("y", "urn:child"), signalWait("c", "go"), endNode(),
	}, "s a", "a v", "v b", "b p", "p c", "x c", "y c", "c e")
	start(t, r, "r", d, nil)
	other := newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated})
	send := func(r *graph.Runner, key string) (*view.Run, error) {
		return r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", IdempotencyKey: key, Payload: object{"key": key}})
	}
	keys := []string{"1", "2", "3", "4", "5", "6"}
	for i, key := range keys {
		if run, err := send(r, key); err != nil || run.Repeated {
			t.Fatalf("%s: %+v, %v", key, run, err)
		}
		settled(t, r, "r")
		for _, before := range keys[:i+1] {
			for _, again := range []*graph.Runner{r, other} {
				if run, err := send(again, before); err != nil || !run.Repeated {
					t.Errorf("%s again after %s: %+v, %v", before, key, run, err)
				}
			}
		}
	}
	wantStatus(t, status(t, r, "r"), machine.Completed)
}

// TestAResultThatBreaksOutputSchemaCostsNothing: the host hears what is wrong, and the attempt stays open until the result fits.
func TestAResultThatBreaksOutputSchemaCostsNothing(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	llm := `{"id":"a","type":"llm_call","config":{"model":"m","user_prompt":"p",` +
		`"output_schema":{"type":"object","required":["x"],"properties":{"x":{"type":"integer"}}}},"retry":{"max_attempts":3}}`
	start(t, r, "r", workflow(t, "typed", []string{startNode(), llm, endNode()}, "s a", "a e"), nil)
	send := func(result object) (*view.Run, error) {
		return r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, Result: result, IdempotencyKey: "r:a#1.1"})
	}
	for range 4 { // more often than there are attempts
		for _, wrong := range []object{{"x": "1"}, {"y": 1}, nil} {
			unchanged(t, store, func() {
				_, err := send(wrong)
				e := wantCode(t, err, problem.SubmitValidationError)
				if !strings.Contains(e.Message, "breaks output_schema") || !strings.Contains(e.Hint, "attempt 1 of 3 is still open") {
					t.Errorf("%v: %v %s", wrong, err, e.Hint)
				}
			})
		}
	}
	if run, err := send(object{"x": 1}); err != nil || run.Status != machine.Completed {
		t.Errorf("a result that fits: %+v, %v", run, err)
	}
	if run, err := send(object{"x": 1}); err != nil || !run.Repeated {
		t.Errorf("sent again: %+v, %v", run, err)
	}
}

// TestARenamedCodeIsRecognised repeats a failure whose code is recorded under the protocol's name for it.
func TestARenamedCodeIsRecognised(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	llm := `{"id":"a","type":"llm_call","config":{"model":"m","user_prompt":"p"},"retry":{"max_attempts":2}}`
	start(t, r, "r", workflow(t, "llm", []string{startNode(), llm, endNode()}, "s a", "a e"), nil)
	req := graph.SubmitRequest{ExecutionID: "r", NodeID: "a", Error: "no", Code: "LLM_OUTPUT_VALIDATION_FAILED", IdempotencyKey: "r:a#1.1"}
	for _, again := range []bool{false, true} {
		if run, err := r.SubmitActivity(t.Context(), req); err != nil || run.Repeated != again {
			t.Errorf("repeated is not %t: %+v, %v", again, run, err)
		}
	}
}

// TestALateCallerHearsWhatWasRecorded: of two calls for the same the one that comes later and says something else is refused, and told what
// the first one has said, and by whom.
func TestALateCallerHearsWhatWasRecorded(t *testing.T) {
	t.Parallel()
	d := workflow(t, "calls", []string{startNode(), tool("a"), interrupt("i"), signalWait("g", "go"), endNode()}, "s a", "a i", "i g", "g e")
	first := graph.WithActor(t.Context(), history.Actor{Via: "command", Name: "ada"})
	submit := func(key string) func(context.Context, *graph.Runner, object) error {
		return func(ctx context.Context, r *graph.Runner, with object) error {
			_, err := r.SubmitActivity(ctx, graph.SubmitRequest{ExecutionID: "r", NodeID: "a", IdempotencyKey: key, OK: true, Result: with})
			return err
		}
	}
	resume := func(id string) func(context.Context, *graph.Runner, object) error {
		return func(ctx context.Context, r *graph.Runner, with object) error {
			_, err := r.Resume(ctx, graph.ResumeRequest{ExecutionID: "r", InterruptID: id, Payload: with})
			return err
		}
	}
	signal := func(key string) func(context.Context, *graph.Runner, object) error {
		return func(ctx context.Context, r *graph.Runner, with object) error {
			_, err := r.Signal(ctx, graph.SignalRequest{ExecutionID: "r", Name: "go", IdempotencyKey: key, Payload: with})
			return err
		}
	}
	fail := func(ctx context.Context, r *graph.Runner, with object) error {
		_, err := r.SubmitActivity(ctx, graph.SubmitRequest{ExecutionID: "r", NodeID: "a", Error: "no net", Code: "NO_NET"})
		return err
	}
	type call = func(context.Context, *graph.Runner, object) error
	payload, outcome := object{"payload": object{"ok": true}}, object{"outcome": object{"ok": true, "result": object{"ok": true}}}
	for name, c := range map[string]struct {
		before  []call
		a, b    call
		content object
	}{
		"submits with a key":       {nil, submit("r:a#1.1"), submit("r:a#1.1"), outcome},
		"submits without a key":    {nil, submit(""), submit(""), outcome},
		"a key, the first had not": {nil, submit(""), submit("r:a#1.1"), outcome},
		"after a failure":          {nil, fail, submit("r:a#1.1"), object{"outcome": object{"ok": false, "error": "no net", "code": "NO_NET"}}},
		"answers":                  {[]call{submit("")}, resume("r:i#1"), resume("r:i#1"), payload},
		"answers without an id":    {[]call{submit("")}, resume(""), resume(""), payload},
		"signals with a key":       {[]call{submit(""), resume("")}, signal("mail"), signal("mail"), payload},
		"signals of two":           {[]call{submit(""), resume("")}, signal("one"), signal("other"), payload},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, store := host(t, graph.Options{})
			start(t, r, "r", d, nil)
			for _, before := range append(c.before, c.a) {
				if err := before(first, r, object{"ok": true}); err != nil {
					t.Fatal(err)
				}
			}
			unchanged(t, store, func() {
				e, ok := problem.As(c.b(t.Context(), r, object{"ok": false}))
				if !ok {
					t.Fatal("the second call is taken")
				}
				recorded, _ := e.Details["recorded"].(map[string]any)
				for member, want := range c.content {
					if !sameJSON(recorded[member], want) || recorded["by"] != "ada (command)" || recorded["seq"] == nil || recorded["at"] == nil {
						t.Errorf("details %v", e.Details)
					}
				}
				if !strings.Contains(e.Hint, "Recorded by ada (command) at ") {
					t.Errorf("hint %s", e.Hint)
				}
			})
		})
	}
}

// TestWhatWasRecordedIsTold in a bounded form, and without what is secret by its name.
func TestWhatWasRecordedIsTold(t *testing.T) {
	t.Parallel()
	for _, result := range []object{{"text": strings.Repeat("x", 5000)}, {"password": "sesame"}} {
		r, _ := host(t, graph.Options{})
		start(t, r, "r", linear(t, "one", "a"), nil)
		req := graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, Result: result, IdempotencyKey: "r:a#1.1"}
		if _, err := r.SubmitActivity(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		req.Result = nil
		_, err := r.SubmitActivity(t.Context(), req)
		e := wantCode(t, err, problem.SubmitNotAwaiting)
		recorded := e.Details["recorded"].(map[string]any)
		told := fmt.Sprint(recorded) + e.Hint
		if len(told) > 3000 || strings.Contains(told, "sesame") || (recorded["outcome"] == nil) != (result["text"] != nil) {
			t.Errorf("told %s", told)
		}
	}
}
