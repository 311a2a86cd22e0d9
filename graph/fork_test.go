package graph_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// TestAForkHasTheTimeThatWasLeft forks a run long after half of its wait was over.
func TestAForkHasTheTimeThatWasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		r := newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated})
		d := workflow(t, "w", []string{startNode(), fork("p", "all", "w", "g"), timerWait("w", "1h"), signalWait("g", "go"), tool("z"), endNode()}, "s p", "p z", "w z", "g z", "z e")
		start(t, r, "r", d, nil)
		time.Sleep(30 * time.Minute)
		if _, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go"}); err != nil {
			t.Fatal(err)
		}
		// The signal's record is half an hour younger than the timer's.
		rs := records(t, store, "r")
		time.Sleep(100 * time.Hour)
		if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", Seq: lastOf(rs, history.SignalReceived), NewExecutionID: "f"}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, status(t, r, "f"), machine.AwaitingTimer)
		due, err := store.DueTimers(t.Context(), time.Now().Add(29*time.Minute), 0)
		if err != nil || len(due) != 0 {
			t.Errorf("due too early: %v, %v", due, err)
		}
		time.Sleep(31 * time.Minute)
		wantStatus(t, status(t, r, "f"), machine.AwaitingActivity)
	})
}

// lastOf gives the seq of the last record of a name.
func lastOf(rs []history.Record, name history.Name) (seq int64) {
	for _, r := range rs {
		if r.Name == name {
			seq = r.Seq
		}
	}
	return seq
}

// TestAForkSharesNoSubworkflow forks a run whose subworkflow is open, and one whose subworkflow has ended.
func TestAForkSharesNoSubworkflow(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	register(t, r, "urn:child", linear(t, "child", "a"))
	d := workflow(t, "parent", []string{startNode(), subworkflow("v", "urn:child"), tool("b"), endNode()}, "s v", "v b", "b e")
	start(t, r, "p", d, nil)
	open := lastOf(records(t, store, "p"), history.SubworkflowStarted)
	submit(t, r, "p:sub:v", "a", object{"a": 1})
	ended := lastOf(records(t, store, "p"), history.SubworkflowCompleted)
	before := len(records(t, store, "p"))

	if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "p", Seq: open, NewExecutionID: "f"}); err != nil {
		t.Fatal(err)
	}
	run := settled(t, r, "f")
	if len(run.Pending) != 1 || run.Pending[0].ExecutionID != "f:sub:v" || run.ForkedFrom != (history.ForkOrigin{ExecutionID: "p", Seq: open}) {
		t.Errorf("%+v", run)
	}
	if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "p", Seq: ended, NewExecutionID: "g"}); err != nil {
		t.Fatal(err)
	}
	run = settled(t, r, "g")
	if len(run.Pending) != 1 || run.Pending[0].NodeID != "b" || run.Pending[0].IdempotencyKey != "g:b#1.1" {
		t.Errorf("%+v", run)
	}
	if _, err := store.Execution(t.Context(), "g:sub:v"); err == nil {
		t.Error("a subworkflow that had ended was started again")
	}
	if n := len(records(t, store, "p")); n != before {
		t.Errorf("the run that was forked grew from %d to %d records", before, n)
	}
	// A subworkflow that is forked belongs to nobody.
	if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "f:sub:v", Seq: 1, NewExecutionID: "c"}); err != nil {
		t.Fatal(err)
	}
	if run := settled(t, r, "c"); run.ParentExecutionID != "" || len(run.Pending) != 1 {
		t.Errorf("%+v", run)
	}
}

// TestRefusedForks write nothing.
func TestRefusedForks(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	start(t, r, "r", linear(t, "lin", "a", "b"), nil)
	submit(t, r, "r", "a", nil)
	rs := records(t, store, "r")
	other := linear(t, "lin", "a", "c")
	unchanged(t, store, func() {
		for _, c := range []struct {
			req  graph.ForkRequest
			code problem.Code
		}{
			{graph.ForkRequest{ExecutionID: "nobody", Seq: 1}, problem.ExecutionNotFound},
			{graph.ForkRequest{ExecutionID: "r", Seq: 0}, problem.ValidationError},
			{graph.ForkRequest{ExecutionID: "r", Seq: int64(len(rs)) + 1}, problem.ValidationError},
			{graph.ForkRequest{ExecutionID: "r", BeforeNode: "c"}, problem.ValidationError},
			{graph.ForkRequest{ExecutionID: "r", Seq: 1, NewExecutionID: "r"}, problem.DuplicateExecutionID},
			{graph.ForkRequest{ExecutionID: "r", Seq: 1, NewExecutionID: "x:sub:y"}, problem.ValidationError},
			{graph.ForkRequest{ExecutionID: "r", Seq: 1, NewExecutionID: strings.Repeat("i", graph.MaxExecutionID+1)}, problem.ValidationError},
			{graph.ForkRequest{ExecutionID: "r", Seq: 1, NewExecutionID: "a\x1b[2J"}, problem.ValidationError},
			{graph.ForkRequest{ExecutionID: "r", Seq: int64(len(rs)), Definition: other}, problem.Nondeterminism},
		} {
			_, err := r.Fork(t.Context(), c.req)
			wantCode(t, err, c.code)
			if c.code == problem.Nondeterminism && !strings.Contains(err.Error(), `ScheduleNode of "c"`) {
				t.Errorf("no place: %v", err)
			}
		}
	})
	// Up to where the definitions part, the other one will do.
	run, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", Seq: lastOf(rs, history.ActivityCompleted), Definition: other, NewExecutionID: "f"})
	if err != nil || run.DefinitionHash != other.Hash() || len(run.Pending) != 1 || run.Pending[0].NodeID != "c" {
		t.Errorf("%+v, %v", run, err)
	}
}

// TestAForkLosesNoOutcome: a definition that has no use for an outcome is refused, also where the outcome has led to no
// command yet, because its branch waits for the one before it. What was only asked for may go.
func TestAForkLosesNoOutcome(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{Branches: machine.Concurrent})
	branches := func(extra ...string) *definition.Document {
		names, nodes := []string{"left", "right"}, []string{startNode(), tool("left"), tool("right")}
		edges := []string{"s p", "p e", "left e", "right e"}
		for _, id := range extra {
			names, nodes, edges = append(names, id), append(nodes, tool(id)), append(edges, id+" e")
		}
		nodes = append(nodes, fork("p", "all", names...), endNode())
		return workflow(t, "branches", nodes, edges...)
	}
	start(t, r, "r", branches("answered", "asked"), nil)
	_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "answered", IdempotencyKey: "r:answered#1.1", OK: true})
	if err != nil {
		t.Fatal(err)
	}
	seq := int64(len(records(t, store, "r")))
	unchanged(t, store, func() {
		_, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", Seq: seq, Definition: branches("asked")})
		wantCode(t, err, problem.Nondeterminism)
		if want := fmt.Sprintf(`record %d is ActivityCompleted of "answered", which the definition does not lead to`, seq); !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	})
	run, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", Seq: seq, Definition: branches("answered"), NewExecutionID: "f"})
	if err != nil || len(run.Pending) != 2 {
		t.Errorf("%+v, %v", run, err)
	}
}

// TestAForkThatWouldFailSaysWhy has a definition that the state does not keep to.
func TestAForkThatWouldFailSaysWhy(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	nodes, edges := []string{startNode(), tool("a"), tool("b"), endNode()}, []string{"s a", "a b", "b e"}
	start(t, r, "r", workflow(t, "w", nodes, edges...), nil)
	submit(t, r, "r", "a", object{"n": 1})
	strict := workflowWith(t, "w", `"state_schema":{"properties":{"n":{"type":"string"}}}`, nodes, edges...)
	_, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", Seq: int64(len(records(t, store, "r"))), Definition: strict})
	wantCode(t, err, problem.Nondeterminism)
	if !strings.Contains(err.Error(), "the state breaks state_schema: ") {
		t.Errorf("no reason: %v", err)
	}
}

// TestAForkHasTasksOfItsOwn forks runs whose task is at a remote agent, asks, was answered, or was cancelled: the agent
// gets another task, and what becomes of that is nothing to the one of the other run.
func TestAForkHasTasksOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asks, answered, cancelled bool
		said                      string
	}{
		"working":   {said: "send r:d#1.2"},
		"asks":      {asks: true, said: "send r:d#1.2"},
		"answered":  {asks: true, answered: true, said: "send r:d#1.2, answer r:d#1.2/1"},
		"cancelled": {cancelled: true, said: "send r:d#1.2, cancel t-r:d#1.2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a, store := &agent{}, historymem.New()
				r := newRunner(t, store, graph.Options{Delegates: a})
				d := workflowWith(t, "del", `"checkpointing":{"strategy":"after_each_node"}`,
					[]string{startNode(), fork("p", "all", "d", "w"), delegateNode("d", `"retry":{"max_attempts":3}`), timerWait("w", "1h"), endNode()},
					"s p", "p e", "d e", "w e")
				atOnce(t, r, "r", d)
				a.fails("r:d#1.1", &activities.Failure{Code: "A2A_TASK_FAILED", Message: "no"}) // an attempt that has ended keeps its task
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if c.asks {
					a.becomes("r:d#1.2", activities.Task{State: activities.TaskAsks, Prompt: "Which file?"})
					wantStatus(t, settled(t, r, "r"), machine.Interrupted)
				}
				if c.answered {
					if _, err := answer(t, r, "r", "", object{"text": "go.mod"}); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				time.Sleep(time.Hour) // the other branch writes behind the task
				synctest.Wait()
				if c.cancelled {
					cancelRun(t, r, a)
					synctest.Wait()
				}
				if _, before, _ := strings.Cut(a.said(), ", "); before != c.said {
					t.Fatalf("before: %s", before)
				}
				end := int64(len(records(t, store, "r")))
				if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", Seq: end, NewExecutionID: "f", Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				run := status(t, r, "f")
				wantStatus(t, run, machine.Running)
				if len(run.Pending) != 1 || run.Pending[0].ExternalTaskID != "t-f:d#1.2" || run.Pending[0].Attempt != 2 {
					t.Errorf("pending %+v", run.Pending)
				}
				for i, rec := range records(t, store, "f") {
					if rec.Seq != int64(i+1) || rec.Name == history.CheckpointWritten && rec.Payload.LastAppliedEventSeq >= rec.Seq {
						t.Errorf("record %d: %+v", i+1, rec)
					}
				}
				if _, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "f"}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if _, after, _ := strings.Cut(a.said(), ", "); after != c.said+", send f:d#1.2, cancel t-f:d#1.2" {
					t.Errorf("after: %s", after)
				}
			})
		})
	}
}

// slowly is a store whose appends take a while, as a disk's do, so that what is recorded after one is of a later time.
type slowly struct{ history.Store }

func (s slowly) Append(ctx context.Context, b history.Batch) error {
	time.Sleep(10 * time.Millisecond)
	return s.Store.Append(ctx, b)
}

// TestAForkOfWhatAskedForTheTime forks a run whose definition asks for the time, at each record and much later. Times move
// along, those that were computed too; history, status and replay agree.
func TestAForkOfWhatAskedForTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := slowly{historymem.New()}
		r := newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated})
		d := workflowWith(t, "w", `"checkpointing":{"strategy":"after_each_node"}`, []string{startNode(),
			`{"id":"x","type":"set_state","config":{"assignments":{"x":{"jq":"now"}}}}`, tool("a"),
			`{"id":"y","type":"set_state","config":{"assignments":{"y":{"jq":"now - .x"}}}}`, interrupt("i"), endNode()},
			"s x", "x a", "a y", "y i", "i e")
		began := start(t, r, "r", d, nil).State["x"].(float64)
		time.Sleep(90 * time.Second)
		submit(t, r, "r", "a", nil)
		rs := records(t, store, "r")
		for seq := 1; seq <= len(rs); seq++ {
			time.Sleep(time.Hour + 1234*time.Microsecond)
			id := fmt.Sprintf("f%d", seq)
			run, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", Seq: int64(seq), NewExecutionID: id})
			if err != nil {
				t.Fatalf("record %d: %v", seq, err)
			}
			time.Sleep(time.Minute)
			if run.Status == machine.AwaitingActivity {
				submit(t, r, id, "a", nil)
			}
			run, err = answer(t, r, id, "", object{"ok": true})
			if err != nil || run.Status != machine.Completed {
				t.Fatalf("record %d: %+v, %v", seq, run, err)
			}
			if x := run.FinalState["x"].(float64); x < began+3600*float64(seq) {
				t.Errorf("record %d: x is %v, and the fork was made long after %v", seq, x, began)
			}
			if y := run.FinalState["y"].(float64); y < 60 || y > 60.1 && y < 90 || y > 90.1 && y < 150 || y > 150.1 {
				t.Errorf("record %d: y is %v", seq, y)
			}
			if found, err := graph.Inspect(t.Context(), store, id); len(found) > 0 || err != nil {
				t.Errorf("record %d: %v, %v", seq, found, err)
			}
		}
	})
}

// TestTimersOfAForkWithinAStep forks at each record of a step that begins a timer: before the command, between the command
// and the timer's record, and behind it. What is stored of the timer is what the records say.
func TestTimersOfAForkWithinAStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := slowly{historymem.New()}
		r := newRunner(t, store, graph.Options{})
		for name, node := range map[string]string{
			"wait":    `{"id":"t","type":"wait","config":{"kind":"duration","duration_ms":3600000}}`,
			"timeout": `{"id":"t","type":"step","config":{"handler":"nobody","timeout":"1h"}}`,
		} {
			d := workflow(t, name, []string{startNode(), node, endNode()}, "s t", "t e")
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: name, Definition: d, Mode: machine.HostMediated, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
				t.Fatal(err)
			}
			for seq := range int64(len(records(t, store, name))) {
				id := fmt.Sprintf("%s-%d", name, seq+1)
				if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: name, Seq: seq + 1, NewExecutionID: id, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if found, err := graph.Inspect(t.Context(), store, id); err != nil || len(found) > 0 {
					t.Errorf("%s: %v, %v", id, found, err)
				}
			}
		}
	})
}

// TestForkBeforeANode begins the new run with the newest visit of the node.
func TestForkBeforeANode(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	start(t, r, "r", linear(t, "lin", "a", "b"), nil)
	submit(t, r, "r", "a", object{"from": "a"})
	submit(t, r, "r", "b", object{"from": "b"})
	for node, state := range map[string]object{"a": {}, "b": {"from": "a"}} {
		run, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", BeforeNode: node, NewExecutionID: "before-" + node})
		if err != nil || len(run.Pending) != 1 || run.Pending[0].NodeID != node || !sameJSON(run.State, state) {
			t.Errorf("%s: %+v %v", node, run, err)
		}
	}
}

// TestForkBeforeANodeThatFailedInABranch: what came of a node in a branch is recorded before its commands, which follow those of the
// branches before it. The fork asks for the node again, and for what was cancelled with it.
func TestForkBeforeANodeThatFailedInABranch(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{Branches: machine.Concurrent})
	d := workflow(t, "fan", []string{startNode(), fork("p", "all", "ra", "rb", "rc"), tool("ra"), tool("rb"), tool("rc"), tool("z"), endNode()},
		"s p", "p z", "ra z", "rb z", "rc z", "z e")
	asks := func(of, id string, nodes ...string) {
		t.Helper()
		run, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: of, BeforeNode: "rb", NewExecutionID: id})
		if err != nil {
			t.Fatal(err)
		}
		var pending []string
		for _, p := range run.Pending {
			pending = append(pending, p.NodeID)
		}
		if !slices.Equal(pending, nodes) {
			t.Fatalf("%s %s asks for %v instead of %v: %s", id, run.Status, pending, nodes, run.Error)
		}
		for _, p := range run.Pending {
			if run, err = r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: id, NodeID: p.NodeID, IdempotencyKey: p.IdempotencyKey, OK: true}); err != nil {
				t.Fatal(err)
			}
		}
		if run.Pending[0].NodeID != "z" {
			t.Errorf("%s stands at %+v", id, run.Pending)
		}
	}
	pending := start(t, r, "r", d, nil).Pending
	wantStatus(t, submitSpan(t, r, pending[1], "NO_NET"), machine.Failed)
	asks("r", "first", "ra", "rb", "rc")
	run := start(t, r, "q", d, nil)
	for i, p := range run.Pending[:2] {
		req := graph.SubmitRequest{ExecutionID: "q", NodeID: p.NodeID, Span: p.Span, OK: i == 0, Error: []string{"", "no luck"}[i]}
		if run, err := r.SubmitActivity(t.Context(), req); err != nil || i == 1 && run.Status != machine.Failed {
			t.Fatal(run, err)
		}
	}
	asks("q", "second", "rb", "rc")
}
