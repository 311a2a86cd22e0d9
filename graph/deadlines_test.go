package graph_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// timed adds a timeout to the config of an interrupt or a parallel node.
func timed(node, timeout string) string {
	return strings.Replace(node, `"config":{`, `"config":{"timeout":"`+timeout+`",`, 1)
}

// TestW37_InterruptDeadlines lets the time for an answer pass: while the process lives, and while none does.
func TestW37_InterruptDeadlines(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r, store := host(t, graph.Options{})
			d := workflow(t, "ask", []string{startNode(), timed(interrupt("a"), "1h"), endNode()}, "s a", "a e")
			begun := time.Now()
			run := start(t, r, "r", d, nil)
			wantStatus(t, run, machine.Interrupted)
			if p := run.Pending[0]; !p.Deadline.Equal(begun.Add(time.Hour)) || p.Timeout != time.Hour {
				t.Errorf("pending %+v", p)
			}
			if restarted {
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Hour)
			if restarted {
				r = newRunner(t, store, graph.Options{})
			} else {
				synctest.Wait()
				exec, err := store.Execution(t.Context(), "r")
				if err != nil || exec.Phase != history.PhaseFailed || len(exec.Waits) > 0 {
					t.Errorf("not fired by itself: %+v, %v", exec, err)
				}
			}
			_, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: run.Pending[0].ID, Payload: map[string]any{"ok": true}})
			wantCode(t, err, problem.InvalidResumePayload)
			run = status(t, r, "r")
			wantStatus(t, run, machine.Failed)
			if run.ErrorCode != string(problem.Timeout) || run.ErrorNodeID != "a" {
				t.Errorf("run %+v", run)
			}
		})
	}
}

// The deadline of an interrupt is everybody's: a process that lacks what would follow does not take a late answer either.
func TestALateAnswerIsRefusedWhereTheNextExecutorIsMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		o := graph.Options{Activities: &script{}}
		r := newRunner(t, store, o)
		d := workflow(t, "ask", []string{startNode(), timed(interrupt("a"), "1h"), tool("t"), endNode()}, "s a", "a t", "t e")
		wantStatus(t, start(t, r, "r", d, nil), machine.Interrupted)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		other := newRunner(t, store, graph.Options{})
		_, err := other.Resume(t.Context(), graph.ResumeRequest{
			ExecutionID: "r", Payload: map[string]any{"ok": true}, Caller: graph.Caller{Mode: machine.HostMediated},
		})
		wantCode(t, err, problem.InvalidResumePayload)
		run := status(t, other, "r")
		if wantStatus(t, run, machine.Failed); run.ErrorNodeID != "a" || run.ErrorCode != string(problem.Timeout) {
			t.Errorf("%+v", run)
		}
	})
}

// TestW37_ParallelDeadlines ends a block whose branches take too long, and stops what they do.
func TestW37_ParallelDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stopped := false
		slow := &script{answers: map[string]func(context.Context, activities.Request) (any, error){
			"a": func(ctx context.Context, _ activities.Request) (any, error) {
				<-ctx.Done()
				stopped = true
				return nil, ctx.Err()
			},
		}}
		store := historymem.New()
		r := newRunner(t, store, graph.Options{Activities: slow})
		d := workflow(t, "par", []string{startNode(), timed(fork("f", "all", "a", "b"), "10s"), tool("a"), tool("b"), endNode()}, "s f", "f e", "a e", "b e")
		begun := time.Now()
		run := start(t, r, "r", d, nil)
		wantStatus(t, run, machine.Failed)
		if run.ErrorCode != string(problem.Timeout) || run.ErrorNodeID != "f" || time.Since(begun) != 10*time.Second {
			t.Errorf("after %s: %+v", time.Since(begun), run)
		}
		synctest.Wait()
		if !stopped {
			t.Error("the slow branch goes on")
		}
		if n := count(records(t, store, "r"), history.TimerFired); n != 1 {
			t.Errorf("%d TimerFired", n)
		}
	})
}

// TestW37_EndOutputSchema fails a run whose result breaks the end node's output_schema.
func TestW37_EndOutputSchema(t *testing.T) {
	t.Parallel()
	end := `{"id":"e","type":"end","config":{"output_mapping":"{n}","output_schema":{"type":"object","properties":{"n":{"type":"integer"}}}}}`
	d := workflow(t, "out", []string{startNode(), end}, "s e")
	r := newRunner(t, historymem.New(), graph.Options{})
	wantStatus(t, start(t, r, "good", d, map[string]any{"n": 1.0}), machine.Completed)
	run := start(t, r, "bad", d, map[string]any{"n": "one"})
	wantStatus(t, run, machine.Failed)
	if run.ErrorCode != string(problem.OutputSchemaViolation) || run.ErrorNodeID != "e" {
		t.Errorf("run %+v", run)
	}
}

// TestAHostHasTheTimeItNeeds: a short timeout of a definition is raised for an attempt that a host performs, and stays what it was
// requested with when another process, with another setting, continues the run.
func TestAHostHasTheTimeItNeeds(t *testing.T) {
	t.Parallel()
	nodes := []string{startNode(), tool("a", `"timeout":"30s"`), tool("long", `"timeout":"2h"`), tool("free"), endNode()}
	edges := []string{"s a", "a long", "long free", "free e"}
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		r := newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated, MinHostTimeout: 10 * time.Minute})
		start(t, r, "r", workflow(t, "slow", nodes, edges...), nil)
		begun := time.Now()
		time.Sleep(5 * time.Minute)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		r = newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated, MinHostTimeout: time.Minute})
		run := status(t, r, "r")
		if p := run.Pending[0]; p.Attempt != 1 || p.Timeout != 10*time.Minute || !p.Deadline.Equal(begun.Add(10*time.Minute)) {
			t.Errorf("after five minutes: attempt %d, timeout %v, deadline %v", p.Attempt, p.Timeout, p.Deadline)
		}
		if run = submit(t, r, "r", "a", nil); run.Pending[0].Timeout != 2*time.Hour {
			t.Errorf("a longer timeout became %v", run.Pending[0].Timeout)
		}
		if run = submit(t, r, "r", "long", nil); run.Pending[0].Timeout != 0 || !run.Pending[0].Deadline.IsZero() {
			t.Errorf("without a timeout: %+v", run.Pending[0])
		}
	})
	synctest.Test(t, func(t *testing.T) { // an executor keeps to the definition
		store := historymem.New()
		r := newRunner(t, store, graph.Options{Activities: &script{}, MinHostTimeout: 10 * time.Minute})
		wantStatus(t, settled(t, r, start(t, r, "r", workflow(t, "quick", nodes, edges...), nil).ExecutionID), machine.Completed)
		for _, rec := range records(t, store, "r") {
			if rec.Name == history.ActivityRequested && rec.Payload.NodeID == "a" && rec.Payload.TimeoutMS != 30_000 {
				t.Errorf("in process the timeout became %d ms", rec.Payload.TimeoutMS)
			}
		}
	})
}
