package graph_test

import (
	"cmp"
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

func waitFor(limit time.Duration) graph.Wait { return graph.WaitAtMost(limit) }

func lookFor(limit time.Duration) *graph.Wait {
	w := waitFor(limit)
	return &w
}

// TestNoCallWaits: with a negative limit a call that says nothing about waiting answers at once.
func TestNoCallWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		minute := &script{answers: answers{
			"slow": func(context.Context, activities.Request) (any, error) { time.Sleep(time.Minute); return nil, nil },
		}}
		r := newRunner(t, historymem.New(), graph.Options{Activities: minute, WaitLimit: -1})
		began := time.Now()
		run, err := r.Start(t.Context(), graph.StartRequest{
			Definition: workflow(t, "w", []string{startNode(), tool("slow"), endNode()}, "s slow", "slow e"),
		})
		if err != nil || run.Status != machine.Running || time.Since(began) != 0 {
			t.Fatalf("%+v, %v after %v", run, err, time.Since(began))
		}
		run, err = r.Status(t.Context(), graph.StatusRequest{ExecutionID: run.ExecutionID, Wait: lookFor(2 * time.Minute)})
		if err != nil || run.Status != machine.Completed {
			t.Fatalf("%+v, %v", run, err)
		}
	})
}

// TestCallsWaitInLineForWaitMSAtMost covers every call that drives a run: past the limit it says where the run stands,
// and the run goes on.
func TestCallsWaitInLineForWaitMSAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		minute := &script{answers: map[string]func(context.Context, activities.Request) (any, error){
			"slow": func(context.Context, activities.Request) (any, error) { time.Sleep(time.Minute); return nil, nil },
		}}
		r := newRunner(t, historymem.New(), graph.Options{Activities: minute})
		after := func(first string) (string, []string) { return first, []string{"s x", "x slow", "slow e"} }
		define := func(name, first string) *graph.StartRequest {
			node, edges := after(first)
			return &graph.StartRequest{ExecutionID: name, Definition: workflow(t, name, []string{startNode(), node, tool("slow"), endNode()}, edges...)}
		}
		calls := map[string]struct {
			first *graph.StartRequest
			call  func(id string, w graph.Wait) (*view.Run, error)
		}{
			"start": {nil, func(id string, w graph.Wait) (*view.Run, error) {
				q := define(id, tool("x"))
				q.Wait = w
				return r.Start(t.Context(), *q)
			}},
			"resume": {define("resume", interrupt("x")), func(id string, w graph.Wait) (*view.Run, error) {
				return r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: id, Payload: object{"ok": true}, Caller: graph.Caller{Wait: w}})
			}},
			"signal": {define("signal", signalWait("x", "go")), func(id string, w graph.Wait) (*view.Run, error) {
				return r.Signal(t.Context(), graph.SignalRequest{ExecutionID: id, Name: "go", Caller: graph.Caller{Wait: w}})
			}},
			"submit": {define("submit", tool("x")), func(id string, w graph.Wait) (*view.Run, error) {
				return r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: id, NodeID: "x", OK: true, Caller: graph.Caller{Wait: w, Mode: machine.InProcess}})
			}},
			"status": {define("status", tool("x")), func(id string, w graph.Wait) (*view.Run, error) {
				return r.Status(t.Context(), graph.StatusRequest{ExecutionID: id, Wait: &w})
			}},
			"drive": {define("drive", tool("x")), func(id string, w graph.Wait) (*view.Run, error) {
				return r.Drive(t.Context(), graph.DriveRequest{ExecutionID: id, Caller: graph.Caller{Wait: w}})
			}},
		}
		for name, c := range calls {
			for _, limit := range []time.Duration{0, 3 * time.Second, graph.NoWait} {
				id := name + limit.String()
				if c.first != nil {
					q := *c.first
					q.ExecutionID = id
					if name == "submit" {
						q.Mode = machine.HostMediated
					}
					q.Wait.Limit = graph.NoWait
					if _, err := r.Start(t.Context(), q); err != nil {
						t.Fatal(err)
					}
				}
				wantTook := max(0, cmp.Or(limit, 20*time.Second))
				begun := time.Now()
				run, err := c.call(id, graph.Wait{Limit: limit})
				if took := time.Since(begun); err != nil || run.Status != machine.Running || took != wantTook {
					t.Errorf("%s after %s: %+v, %v", id, took, run, err)
				}
				time.Sleep(time.Minute + time.Second)
				wantStatus(t, status(t, r, id), machine.Completed)
			}
		}
		run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "nap", Wait: waitFor(time.Minute),
			Definition: workflow(t, "nap", []string{startNode(), timerWait("x", "2m"), endNode()}, "s x", "x e")})
		if err != nil || run.Status != machine.AwaitingTimer || run.Pending[0].Due.IsZero() {
			t.Errorf("%+v, %v", run, err)
		}
	})
}

// TestStatusWaitsForASubworkflow: what changes in a subworkflow beside another branch that waits for somebody counts as a change of the
// run, whoever makes it.
func TestStatusWaitsForASubworkflow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		r, other := newRunner(t, store, graph.Options{}), newRunner(t, store, graph.Options{})
		child := workflow(t, "child", []string{startNode(), interrupt("i"), interrupt("j"), interrupt("k"), endNode()}, "s i", "i j", "j k", "k e")
		register(t, r, "urn:child", child)
		register(t, other, "urn:child", child)
		parent := workflow(t, "parent", []string{startNode(), fork("f", "all", "g", "v"), signalWait("g", "go"), subworkflow("v", "urn:child"), endNode()},
			"s f", "f e", "g e", "v e")
		run := start(t, r, "p", parent, nil)
		for i, process := range []*graph.Runner{r, other} {
			go func() {
				time.Sleep(10 * time.Second)
				if _, err := process.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "p:sub:v", Payload: object{"ok": i == 0}}); err != nil {
					t.Error(err)
				}
			}()
			begun := time.Now()
			run, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: "p", Since: run.Seq, Wait: lookFor(time.Minute)})
			if took := time.Since(begun); err != nil || took < 10*time.Second || took > 11*time.Second {
				t.Errorf("process %d: %s after %s, %v", i+1, run.Status, took, err)
			}
		}
	})
}

// TestStatusWaitsForAChange holds what status waits for: a run that goes on by itself within the wait, whoever drives it, and with Since
// any change, which another process may make.
func TestStatusWaitsForAChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		r, other := newRunner(t, store, graph.Options{}), newRunner(t, store, graph.Options{})
		ask := func(id string, since int64, limit time.Duration) (*view.Run, time.Duration) {
			t.Helper()
			begun := time.Now()
			run, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: id, Since: since, Wait: lookFor(limit)})
			if err != nil {
				t.Fatal(err)
			}
			return run, time.Since(begun)
		}
		d := workflow(t, "nap", []string{startNode(), fork("f", "any", "w", "g"), timerWait("w", "1h"), signalWait("g", "go"), endNode()},
			"s f", "f e", "w e", "g e")
		nap := workflow(t, "nap2", []string{startNode(), timerWait("w", "1h"), endNode()}, "s w", "w e")
		start(t, r, "n", d, nil)
		start(t, r, "nap", nap, nil)

		run, took := ask("n", 0, time.Minute)
		if took != 0 || run.Status != machine.AwaitingSignal {
			t.Errorf("a run that waits for others: %s after %s", run.Status, took)
		}
		if run, took = ask("n", run.Seq, time.Minute); took != time.Minute {
			t.Errorf("without a change: %s after %s", run.Status, took)
		}
		seq := run.Seq
		if run, took = ask("n", seq-1, time.Minute); took != 0 {
			t.Errorf("changed already: %s after %s", run.Status, took)
		}
		if run, took = ask("nap", 0, time.Minute); took != 0 || run.Status != machine.AwaitingTimer {
			t.Errorf("a timer that is due after the wait: %s after %s", run.Status, took)
		}
		napSeq := run.Seq
		go func() {
			time.Sleep(10 * time.Second)
			if _, err := other.Signal(t.Context(), graph.SignalRequest{ExecutionID: "n", Name: "go"}); err != nil {
				t.Error(err)
			}
		}()
		if run, took = ask("n", seq, time.Minute); run.Status != machine.Completed || took > 10*time.Second+250*time.Millisecond {
			t.Errorf("another process's signal: %s after %s", run.Status, took)
		}
		go func() {
			time.Sleep(10 * time.Second)
			if _, err := other.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "nap"}); err != nil {
				t.Error(err)
			}
		}()
		if run, took = ask("nap", napSeq, time.Minute); run.Status != machine.Cancelled || took > 10*time.Second+250*time.Millisecond {
			t.Errorf("another process's cancel: %s after %s", run.Status, took)
		}
		start(t, r, "soon", nap, nil)
		time.Sleep(time.Hour - 30*time.Second)
		if run, took = ask("soon", 0, time.Minute); run.Status != machine.Completed || took != 30*time.Second {
			t.Errorf("a timer that is due within the wait: %s after %s", run.Status, took)
		}
	})
}

// TestWaitEnds ends waits from outside: the calls answer where the run stands, and a call that has not begun is performed
// all the same.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(t, historymem.New(), graph.Options{Activities: &script{answers: answers{"a": after(time.Hour, object{})}}})
		end := make(chan struct{})
		w := waitFor(time.Minute)
		w.End, w.Progress = end, func(graph.Progress) {}
		go func() {
			time.Sleep(5 * time.Second)
			close(end)
		}()
		d := linear(t, "w", "a")
		for i, took := range []time.Duration{5 * time.Second, 0} {
			begun := time.Now()
			run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: strconv.Itoa(i), Definition: d, Wait: w})
			if err != nil || run.Status != machine.Running || time.Since(begun) != took {
				t.Errorf("start %d: %v, %v after %s, want %s", i, run, err, time.Since(begun), took)
			}
		}
		begun := time.Now()
		run, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: "0", Wait: &w})
		if err != nil || run.Status != machine.Running || time.Since(begun) != 0 {
			t.Errorf("status: %v, %v after %s", run, err, time.Since(begun))
		}
	})
}
