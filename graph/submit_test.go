package graph_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

func TestSubmit(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := workflow(t, "lin", []string{startNode(),
		tool("a", `"timeout":"30s"`, `"retry":{"max_attempts":3}`, `"metadata":{"k":1}`), tool("b"), endNode()}, "s a", "a b", "b e")
	run := start(t, r, "r", d, object{"in": 1})
	wantStatus(t, run, machine.AwaitingActivity)
	if len(run.Pending) != 1 {
		t.Fatalf("pending %+v", run.Pending)
	}
	p := run.Pending[0]
	if p.Kind != machine.WaitActivity || !p.Host || p.ExecutionID != "r" || p.NodeID != "a" || p.NodeType != "tool_call" || p.Visit != 1 ||
		p.Attempt != 1 || p.MaxAttempts != 3 || p.ID != "r:a#1.1" || p.IdempotencyKey != p.ID || p.Timeout != 30*time.Second ||
		!p.Deadline.Equal(p.RequestedAt.Add(p.Timeout)) || p.Config["tool"] != "a" || !sameJSON(p.State, object{"in": 1}) {
		t.Errorf("pending %+v", p)
	}
	if run.CurrentNodeID != "a" || !sameJSON(run.State, object{"in": 1}) {
		t.Errorf("run %+v", run)
	}
	run = submit(t, r, "r", "a", object{"x": 1})
	if p := run.Pending; len(p) != 1 || p[0].NodeID != "b" || !sameJSON(run.State, object{"in": 1, "x": 1}) {
		t.Errorf("run %+v", run)
	}
	run = submit(t, r, "r", "b", object{"y": 2})
	wantStatus(t, run, machine.Completed)
	if n := count(records(t, store, "r"), history.ActivityRequested); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func TestSubmitRefusalsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{MaxDocumentBytes: 4000})
	lin := linear(t, "lin", "a", "b")
	par := workflow(t, "par", []string{startNode(), fork("p", "all", "a", "b"), tool("a"), tool("b"), endNode()}, "s p", "p e", "a e", "b e")
	typed := workflowWith(t, "typed", `"state_schema":{"type":"object","properties":{"n":{"type":"integer"}}}`,
		[]string{startNode(), tool("a"), endNode()}, "s a", "a e")
	delegated := workflow(t, "del", []string{startNode(), delegateNode("d"), endNode()}, "s d", "d e")
	start(t, r, "lin", lin, object{"o": object{"a": 1, "b": 2}})
	start(t, r, "par", par, nil)
	start(t, r, "typed", typed, nil)
	start(t, r, "del", delegated, nil)
	start(t, r, "done", lin, nil)
	submit(t, r, "done", "a", nil)
	submit(t, r, "done", "b", nil)
	span := &history.ParallelSpan{ParallelNodeID: "p", JoinTargetID: "e", BranchName: "b_a", BranchEntryNodeID: "a"}
	for name, c := range map[string]struct {
		req  graph.SubmitRequest
		code problem.Code
	}{
		"unknown run":            {graph.SubmitRequest{ExecutionID: "ghost", NodeID: "a", OK: true}, problem.SubmitNotAwaiting},
		"blank run":              {graph.SubmitRequest{NodeID: "a", OK: true}, problem.SubmitValidationError},
		"blank node":             {graph.SubmitRequest{ExecutionID: "lin", OK: true}, problem.SubmitValidationError},
		"failure without text":   {graph.SubmitRequest{ExecutionID: "lin", NodeID: "a"}, problem.SubmitValidationError},
		"other node":             {graph.SubmitRequest{ExecutionID: "lin", NodeID: "b", OK: true}, problem.SubmitNodeMismatch},
		"span not wanted":        {graph.SubmitRequest{ExecutionID: "lin", NodeID: "a", Span: span, OK: true}, problem.SubmitParallelMismatch},
		"span missing":           {graph.SubmitRequest{ExecutionID: "par", NodeID: "a", OK: true}, problem.SubmitParallelMismatch},
		"span of another branch": {graph.SubmitRequest{ExecutionID: "par", NodeID: "b", Span: span, OK: true}, problem.SubmitParallelMismatch},
		"state broken":           {graph.SubmitRequest{ExecutionID: "typed", NodeID: "a", OK: true, Result: object{"n": "x"}}, problem.SubmitValidationError},
		"no correlation":         {graph.SubmitRequest{ExecutionID: "del", NodeID: "d", OK: true}, problem.SubmitValidationError},
		"wrong correlation":      {graph.SubmitRequest{ExecutionID: "del", NodeID: "d", OK: true, CorrelationID: "x"}, problem.SubmitValidationError},
		"W-14 completed run":     {graph.SubmitRequest{ExecutionID: "done", NodeID: "b", OK: true, Result: object{"second": 1}}, problem.SubmitNotAwaiting},
		"large result":           {graph.SubmitRequest{ExecutionID: "lin", NodeID: "a", OK: true, Result: object{"x": strings.Repeat("x", 4000)}}, problem.SubmitValidationError},
		"unknown mode":           {graph.SubmitRequest{ExecutionID: "lin", NodeID: "a", OK: true, Caller: graph.Caller{Mode: "x"}}, problem.SubmitValidationError},
		"key of another attempt": {graph.SubmitRequest{ExecutionID: "lin", NodeID: "a", OK: true, IdempotencyKey: "lin:a#1.2"}, problem.SubmitNotAwaiting},
	} {
		t.Run(name, func(t *testing.T) {
			unchanged(t, store, func() {
				run, err := r.SubmitActivity(t.Context(), c.req)
				if run != nil {
					t.Errorf("run %+v", run)
				}
				wantCode(t, err, c.code)
			})
		})
	}
	if run := submit(t, r, "lin", "a", nil); run.Pending[0].NodeID != "b" {
		t.Errorf("after all refusals: %+v", run)
	}
}

// TestW62_NothingIsSubmittedDuringABackoff leaves the next attempt to the timer.
func TestW62_NothingIsSubmittedDuringABackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, store := host(t, graph.Options{})
		d := workflow(t, "lin", []string{startNode(), tool("a", `"retry":{"max_attempts":2,"initial_interval":"1h"}`), endNode()}, "s a", "a e")
		start(t, r, "r", d, nil)
		run, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", Error: "no"})
		if err != nil || run.Status != machine.AwaitingTimer {
			t.Fatalf("%+v, %v", run, err)
		}
		next := run.Pending[0].Due.UTC().Format(time.RFC3339Nano)
		unchanged(t, store, func() {
			_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true})
			e := wantCode(t, err, problem.SubmitNotAwaiting)
			if want := `attempt 1 of node "a" has failed; the next attempt starts at ` + next; e.Message != want {
				t.Errorf("%s, want %s", e.Message, want)
			}
			_, err = r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "b", OK: true})
			if e := wantCode(t, err, problem.SubmitNotAwaiting); strings.Contains(e.Message, "attempt") {
				t.Errorf("another node: %s", e.Message)
			}
		})
		time.Sleep(time.Hour)
		synctest.Wait()
		wantStatus(t, submit(t, r, "r", "a", nil), machine.Completed)
		if n := count(records(t, store, "r"), history.ActivityRequested); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestALateSubmitIsToldOfTheTimeout says so during the back-off after it, and when the next attempt begins.
func TestALateSubmitIsToldOfTheTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, store := host(t, graph.Options{})
		d := workflow(t, "lin", []string{startNode(), tool("a", `"timeout":"1s"`, `"retry":{"max_attempts":2,"initial_interval":"1h"}`), endNode()}, "s a", "a e")
		start(t, r, "r", d, nil)
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		next := status(t, r, "r").Pending[0].Due.UTC().Format(time.RFC3339Nano)
		for _, key := range []string{"", "r:a#1.1"} {
			unchanged(t, store, func() {
				_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, IdempotencyKey: key})
				if e := wantCode(t, err, problem.SubmitNotAwaiting); !strings.Contains(e.Message, "attempt 1") || !strings.Contains(e.Message, "timed out") || !strings.Contains(e.Message, next) {
					t.Errorf("key %q: %v", key, err)
				}
			})
		}
	})
}

// TestALateSubmitIsToldOfTheTimeoutBesideABranch says it also if another branch awaits the host.
func TestALateSubmitIsToldOfTheTimeoutBesideABranch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, store := host(t, graph.Options{})
		d := workflow(t, "par", []string{startNode(), fork("p", "all", "a", "b"),
			tool("a", `"timeout":"1s"`, `"retry":{"max_attempts":2,"initial_interval":"1h"}`), tool("b"), endNode()}, "s p", "p e", "a e", "b e")
		start(t, r, "r", d, nil)
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		unchanged(t, store, func() {
			_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, IdempotencyKey: "r:a#1.1"})
			want := `the run awaits node "b", not "a": attempt 1 of node "a" has timed out; the next attempt starts at `
			if e := wantCode(t, err, problem.SubmitNodeMismatch); !strings.HasPrefix(e.Message, want) {
				t.Errorf("%s, want %s", e.Message, want)
			}
		})
	})
}

func TestSubmittedFailureIsRetriedThenFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, store := host(t, graph.Options{})
		d := workflow(t, "lin", []string{startNode(), tool("a", `"retry":{"max_attempts":3,"initial_interval":"5s","backoff_coefficient":10}`), endNode()}, "s a", "a e")
		start(t, r, "r", d, nil)
		fail := func() *view.Run {
			t.Helper()
			run, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", Error: "no luck", Code: "X"})
			if err != nil {
				t.Fatal(err)
			}
			return run
		}
		begun := time.Now()
		run := fail()
		wantStatus(t, run, machine.AwaitingActivity) // 5 s of back-off are waited for in line
		p := run.Pending[0]
		if p.Attempt != 2 || p.LastError != "no luck" || p.LastCode != "X" || time.Since(begun) != 5*time.Second {
			t.Errorf("after %s: %+v", time.Since(begun), p)
		}
		run = fail() // 50 s are more than the limit
		wantStatus(t, run, machine.AwaitingTimer)
		if p := run.Pending[0]; p.Kind != machine.WaitBackoff || !p.Due.Equal(time.Now().Add(50*time.Second)) {
			t.Errorf("pending %+v", p)
		}
		time.Sleep(50*time.Second + time.Millisecond)
		synctest.Wait()
		run = fail()
		wantStatus(t, run, machine.Failed)
		if run.Error != "no luck" || run.ErrorCode != "X" || run.ErrorNodeID != "a" {
			t.Errorf("run %+v", run)
		}
		rs := records(t, store, "r")
		if n := count(rs, history.ActivityFailed); n != 3 {
			t.Errorf("%d failures", n)
		}
		// W-14: a failed run is not revived.
		_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true})
		wantCode(t, err, problem.SubmitNotAwaiting)
	})
}

// TestSubmitRepeated holds that a submit whose answer was lost can be sent again with the attempt's key.
func TestSubmitRepeated(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	start(t, r, "r", linear(t, "lin", "a", "b"), nil)
	req := graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, Result: object{"x": 1}, IdempotencyKey: "r:a#1.1"}
	first, err := r.SubmitActivity(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	unchanged(t, store, func() {
		again, err := r.SubmitActivity(t.Context(), req)
		if err != nil || again.Seq != first.Seq || again.Pending[0].NodeID != "b" {
			t.Errorf("repeated: %+v, %v", again, err)
		}
		req.Result = object{"x": 2}
		_, err = r.SubmitActivity(t.Context(), req)
		wantCode(t, err, problem.SubmitNotAwaiting)
	})
	submit(t, r, "r", "b", nil)
	req.Result = object{"x": 1.0}
	if again, err := r.SubmitActivity(t.Context(), req); err != nil || again.Status != machine.Completed {
		t.Errorf("repeated after the end: %+v, %v", again, err)
	}
}

// TestW13_ASubmittedFailureHonoursTheJoin also covers W-11: the tolerated failure leaves the run going.
func TestW13_ASubmittedFailureHonoursTheJoin(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := workflow(t, "any", []string{startNode(), fork("p", "any", "a", "b"), tool("a"), tool("b"), endNode()}, "s p", "p e", "a e", "b e")
	run := start(t, r, "r", d, nil)
	if len(run.Pending) != 2 || run.Pending[0].NodeID != "a" || run.Pending[1].NodeID != "b" {
		t.Fatalf("pending %+v", run.Pending)
	}
	run, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", Span: run.Pending[0].Span, Error: "no"})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, run, machine.AwaitingActivity)
	run, err = r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "b", Span: run.Pending[0].Span, OK: true, Result: object{"b": 1}})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, run, machine.Completed)
	if n := count(records(t, store, "r"), history.ExecutionFailed); n != 0 {
		t.Errorf("%d ExecutionFailed", n)
	}
}

// TestW20_ARetriedDelegateKeepsItsContext covers the answer and the status.
func TestW20_ARetriedDelegateKeepsItsContext(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	d := workflow(t, "del", []string{startNode(), delegateNode("d", `"retry":{"max_attempts":2}`), endNode()}, "s d", "d e")
	start(t, r, "r", d, nil)
	run, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "d", Error: "no"})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []*view.Run{run, status(t, r, "r")} {
		p := run.Pending[0]
		if p.Kind != machine.WaitDelegate || p.AgentID != "coder" || p.Protocol != "a2a" || p.CorrelationID != "r:delegate:d" ||
			p.DelegateInput["task"] != "do" || p.Attempt != 2 || run.DelegateCorrelationID != "r:delegate:d" {
			t.Errorf("pending %+v", p)
		}
	}
	run, err = r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "d", OK: true,
		Result: object{"out": 1, "delegateCorrelationId": "r:delegate:d", "externalTaskId": "t1"}})
	if err != nil || !sameJSON(run.FinalState, object{"out": 1}) {
		t.Errorf("%+v, %v", run, err)
	}
}

// TestW16_EachVisitHasAnOutcomeOfItsOwn loops over one node.
func TestW16_EachVisitHasAnOutcomeOfItsOwn(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := loop(t, tool("a"))
	start(t, r, "r", d, object{"n": 0})
	for i := 1; i <= 3; i++ {
		run := status(t, newRunner(t, store, graph.Options{}), "r") // as after a restart
		if p := run.Pending[0]; p.Visit != i {
			t.Fatalf("visit %d, want %d", p.Visit, i)
		}
		submit(t, r, "r", "a", object{"n": i})
	}
	run := status(t, r, "r")
	wantStatus(t, run, machine.Completed)
	if !sameJSON(run.FinalState, object{"n": 3}) {
		t.Errorf("final state %v", run.FinalState)
	}
}

// loop is a workflow that visits a node until n is 3.
func loop(t testing.TB, node string) *definition.Document {
	t.Helper()
	return workflow(t, "loop", []string{startNode(), node,
		`{"id":"sw","type":"switch","config":{"cases":[{"when":".n < 3","target":"a"}],"default":"e"}}`, endNode()}, "s a", "a sw")
}

// TestSubmitOneWins submits the same outcome from many sides.
func TestSubmitOneWins(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	other := newRunner(t, store, graph.Options{})
	start(t, r, "r", linear(t, "lin", "a", "b"), nil)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		runner := r
		if i%2 == 1 {
			runner = other
		}
		wg.Go(func() {
			_, errs[i] = runner.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, Result: object{"by": i}})
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			wantCode(t, err, problem.SubmitNodeMismatch)
		}
	}
	if won != 1 || count(records(t, store, "r"), history.ActivityCompleted) != 1 {
		t.Errorf("%d won; history %v", won, names(records(t, store, "r"), ""))
	}
}

// TestTheKeyTellsTheBranch submits to branches with the attempt's key alone: who copies that need not copy the span too.
func TestTheKeyTellsTheBranch(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := workflow(t, "par", []string{startNode(), fork("f", "all", "a", "b"), tool("a"), tool("b"), endNode()}, "s f", "f e", "a e", "b e")
	start(t, r, "r", d, nil)
	send := func(node, key string) (*view.Run, error) {
		return r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: node, OK: true, Result: object{node: 1}, IdempotencyKey: key})
	}
	unchanged(t, store, func() {
		_, err := send("b", "")
		wantCode(t, err, problem.SubmitParallelMismatch)
		_, err = send("b", "r:b#1.2")
		wantCode(t, err, problem.SubmitNotAwaiting)
		_, err = send("b", "r:a#1.1")
		wantCode(t, err, problem.SubmitNotAwaiting)
	})
	for _, node := range []string{"b", "a"} {
		if _, err := send(node, "r:"+node+"#1.1"); err != nil {
			t.Fatal(err)
		}
	}
	if run := status(t, r, "r"); !sameJSON(run.FinalState, object{"a": 1, "b": 1}) {
		t.Errorf("%+v", run)
	}
}

// TestLongTextsOfAHostAreCut records the beginning of a long error or reason, which every answer repeats. The same long
// error, sent again, is a repeat; one of another length is not.
func TestLongTextsOfAHostAreCut(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := workflow(t, "lin", []string{startNode(), tool("a", `"retry":{"max_attempts":2}`), endNode()}, "s a", "a e")
	start(t, r, "r", d, nil)
	long := strings.Repeat("e", 100_000)
	recorded := long[:problem.MaxText] + "… (100000 bytes)"
	req := graph.SubmitRequest{ExecutionID: "r", NodeID: "a", Error: long, Code: "X", IdempotencyKey: "r:a#1.1"}
	for _, again := range []bool{false, true} {
		run, err := r.SubmitActivity(t.Context(), req)
		if err != nil || run.Repeated != again || run.Pending[0].LastError != recorded {
			t.Fatalf("repeated is not %t: %+v, %v", again, run, err)
		}
	}
	req.Error += "e"
	_, err := r.SubmitActivity(t.Context(), req)
	wantCode(t, err, problem.SubmitNotAwaiting)
	for range 2 {
		run, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "r", Reason: long})
		if err != nil || run.Reason != recorded {
			t.Errorf("cancelled: %+v, %v", run, err)
		}
	}
	for _, rec := range records(t, store, "r") {
		if n := len(rec.Raw); n > 2*problem.MaxText {
			t.Errorf("%s has %d bytes", rec.Name, n)
		}
	}
}

// TestALongViolationIsCut says the beginning of what is wrong with a result that breaks output_schema in many places.
func TestALongViolationIsCut(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	llm := `{"id":"a","type":"llm_call","config":{"model":"m","user_prompt":"p",` +
		`"output_schema":{"type":"object","properties":{"x":{"type":"array","items":{"type":"integer"}}}}}}`
	start(t, r, "r", workflow(t, "typed", []string{startNode(), llm, endNode()}, "s a", "a e"), nil)
	texts := make([]any, 10_000)
	for i := range texts {
		texts[i] = "x"
	}
	unchanged(t, store, func() {
		_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, Result: object{"x": texts}})
		if e := wantCode(t, err, problem.SubmitValidationError); len(e.Message) > problem.MaxText+100 {
			t.Errorf("a message of %d bytes", len(e.Message))
		}
	})
}

// TestAWrongNodeIsToldAllThatAreAwaited names what several branches wait for, up to eight of them.
func TestAWrongNodeIsToldAllThatAreAwaited(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	for branches, want := range map[int]string{
		1:  `the run awaits node "a0", not "zz"`,
		2:  `the run awaits nodes "a0", "a1", not "zz"`,
		8:  `the run awaits nodes "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", not "zz"`,
		10: `the run awaits nodes "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7" and 2 more, not "zz"`,
	} {
		id := fmt.Sprintf("r%d", branches)
		nodes, edges, entries := []string{startNode()}, []string{"s p", "p e"}, []string{}
		for i := range branches {
			node := fmt.Sprintf("a%d", i)
			nodes, entries = append(nodes, tool(node)), append(entries, node)
			edges = append(edges, node+" e")
		}
		start(t, r, id, workflow(t, "wide", append(nodes, fork("p", "all", entries...), endNode()), edges...), nil)
		unchanged(t, store, func() {
			_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: id, NodeID: "zz", OK: true})
			if e := wantCode(t, err, problem.SubmitNodeMismatch); e.Message != want || e.Hint == "" || e.At.NodeID != "" {
				t.Errorf("%d branches: %+v", branches, e)
			}
		})
	}
}

// A key of another attempt that is pending is named as that attempt's, in branches, items and subworkflows, and nothing is recorded.
func TestAKeyOfAnotherAttemptIsNamed(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	register(t, r, "urn:child", linear(t, "child", "c"))
	d := workflow(t, "par", []string{startNode(), fork("p", "all", "a", "b", "v"), tool("a"), tool("b"), subworkflow("v", "urn:child"), endNode()}, "s p", "p e", "a e", "b e", "v e")
	start(t, r, "r", d, nil)
	span := &history.ParallelSpan{ParallelNodeID: "p", JoinTargetID: "e", BranchName: "b_a", BranchEntryNodeID: "a"}
	for name, c := range map[string]struct {
		req   graph.SubmitRequest
		code  problem.Code
		whose string
	}{
		"another branch's":          {graph.SubmitRequest{NodeID: "a", IdempotencyKey: "r:b#1.1"}, problem.SubmitNotAwaiting, `node "b" in branch "b_b"`},
		"another branch's, by span": {graph.SubmitRequest{NodeID: "a", Span: span, IdempotencyKey: "r:b#1.1"}, problem.SubmitNotAwaiting, `node "b" in branch "b_b"`},
		"the span is another's":     {graph.SubmitRequest{NodeID: "b", Span: span, IdempotencyKey: "r:b#1.1"}, problem.SubmitParallelMismatch, `node "b" in branch "b_b"`},
		"the node is unknown":       {graph.SubmitRequest{NodeID: "x", IdempotencyKey: "r:b#1.1"}, problem.SubmitNodeMismatch, `node "b" in branch "b_b"`},
		"a subworkflow's":           {graph.SubmitRequest{NodeID: "x", IdempotencyKey: "r:sub:v:c#1.1"}, problem.SubmitNodeMismatch, `node "c"`},
	} {
		c.req.ExecutionID, c.req.OK = "r", true
		unchanged(t, store, func() {
			_, err := r.SubmitActivity(t.Context(), c.req)
			e := wantCode(t, err, c.code)
			if !strings.HasSuffix(e.Message, "the idempotency key belongs to "+c.whose) || !strings.Contains(e.Hint, c.whose) {
				t.Errorf("%s: %s\n%s", name, e.Message, e.Hint)
			}
		})
	}
	each := workflowWith(t, "each", `"x-workflows-engine":{"uses":["map"]}`, []string{startNode(), `{"id":"m","type":"step","map":{"items":".items","as":"n"},"config":{"handler":"h"}}`, endNode()}, "s m", "m e")
	run := start(t, r, "i", each, object{"items": []any{1, 2}})
	_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "i", NodeID: "x", OK: true, IdempotencyKey: run.Pending[1].IdempotencyKey})
	if e := wantCode(t, err, problem.SubmitNodeMismatch); !strings.HasSuffix(e.Message, `belongs to node "m", item 1`) {
		t.Errorf("an item's: %s", e.Message)
	}
}
