package graph_test

import (
	"context"
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

// TestCloseDrains has a process close while an attempt of each of two runs is in flight, and another process waits beside it. The short
// attempt ends and its outcome is recorded, the long one is stopped when the time is over. What follows from the short one is begun by
// the other process within a second of it, what is left of the long one within a second of the close; nothing is performed twice.
func TestCloseDrains(t *testing.T) {
	t.Parallel()
	for offset := range 10 {
		synctest.Test(t, func(t *testing.T) {
			store := historymem.New()
			work := func(d time.Duration) func(context.Context, activities.Request) (any, error) { return after(d, nil) }
			begun := map[string]time.Time{}
			note := func(_ context.Context, req activities.Request) (any, error) {
				begun[req.ExecutionID+req.NodeID] = time.Now()
				return nil, nil
			}
			old := &script{answers: answers{"a": func(ctx context.Context, req activities.Request) (any, error) {
				return work(map[string]time.Duration{"short": 5 * time.Second, "long": time.Hour}[req.ExecutionID])(ctx, req)
			}}}
			first := newRunner(t, store, graph.Options{Activities: old, Drain: 20 * time.Second, Work: graph.WorkAll})
			for _, id := range []string{"short", "long"} {
				if _, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: linear(t, "lin", "a", "b"), Wait: waitFor(0)}); err != nil {
					t.Fatal(err)
				}
			}
			newRunner(t, store, graph.Options{Activities: &script{answers: answers{"a": note, "b": note}}, Work: graph.WorkAll})
			time.Sleep(time.Millisecond + time.Duration(offset)*130*time.Millisecond)
			ends := time.Now().Add(5*time.Second - time.Millisecond - time.Duration(offset)*130*time.Millisecond)
			asked := time.Now()
			closeRunner(t, first)
			closed := time.Now()
			if took := closed.Sub(asked); took != 20*time.Second {
				t.Errorf("offset %d: closed after %s", offset, took)
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if at := begun["shortb"]; at.IsZero() || at.Sub(ends) > time.Second || !begun["shorta"].IsZero() {
				t.Errorf("offset %d: what follows was begun %s after the attempt", offset, at.Sub(ends))
			}
			if at := begun["longa"]; at.IsZero() || at.Sub(closed) > time.Second || at.Before(closed) {
				t.Errorf("offset %d: what was left was begun %s after the close", offset, at.Sub(closed))
			}
			for _, id := range []string{"short", "long"} {
				if n := count(records(t, store, id), history.ActivityCompleted); n != 2 {
					t.Errorf("%s: %d outcomes", id, n)
				}
			}
			if old.count() != 2 {
				t.Errorf("the closing process performed %v", old.keys())
			}
		})
	}
}

// TestADrainedCloseReturnsAtOnce when nothing is in flight, and as soon as the last attempt has ended. Nothing new is begun: no second
// node, no branch in waiting, no retry, no subworkflow, no poll of a task.
func TestADrainedCloseReturnsAtOnce(t *testing.T) {
	t.Parallel()
	for name, nodes := range map[string][]string{
		"node":        {startNode(), tool("a"), tool("b"), endNode()},
		"retry":       {startNode(), tool("a"), tool("b", `"retry":{"max_attempts":3,"initial_interval":"1s"}`), endNode()},
		"subworkflow": {startNode(), tool("a"), subworkflow("b", "urn:child"), endNode()},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := historymem.New()
			exec := &script{answers: answers{"a": after(3*time.Second, nil)}}
			r := newRunner(t, store, graph.Options{Activities: exec, Drain: time.Minute, Work: graph.WorkAll})
			register(t, r, "urn:child", linear(t, "child", "ca"))
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: workflow(t, "w", nodes, "s a", "a b", "b e"), Wait: waitFor(0)}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			begun := time.Now()
			closeRunner(t, r)
			if took := time.Since(begun); took != 3*time.Second || exec.count() != 1 {
				t.Errorf("%s: closed after %s, performed %v", name, took, exec.keys())
			}
			if _, err := store.Execution(t.Context(), "r:sub:b#1"); err == nil {
				t.Errorf("%s: a subworkflow was begun", name)
			}
			other := newRunner(t, store, graph.Options{Activities: &script{}, Work: graph.WorkAll})
			register(t, other, "urn:child", linear(t, "child", "ca"))
			time.Sleep(20 * time.Second)
			wantStatus(t, status(t, other, "r"), machine.Completed)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(t, historymem.New(), graph.Options{Activities: &script{}, Drain: time.Minute, Work: graph.WorkAll})
		begun := time.Now()
		closeRunner(t, r)
		if took := time.Since(begun); took != 0 {
			t.Errorf("idle: closed after %s", took)
		}
	})
}

// TestCloseCalledByAnExecutorComesToAnEnd: it waits for the executor that calls it, and gives up.
func TestCloseCalledByAnExecutorComesToAnEnd(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]bool{"executor": false, "OnRecord": true} {
		synctest.Test(t, func(t *testing.T) {
			var r *graph.Runner
			var closed error
			done, calls := make(chan struct{}), 0
			quit := func() {
				if calls++; calls == 1 {
					closed = r.Close()
					close(done)
				}
			}
			exec := &script{answers: answers{"a": func(context.Context, activities.Request) (any, error) {
				if !hook {
					quit()
				}
				return nil, nil
			}}}
			o := graph.Options{Activities: exec, Drain: 5 * time.Second}
			if hook {
				o.OnRecord = func(graph.RecordEvent) { quit() }
			}
			var err error
			if r, err = graph.New(historymem.New(), o); err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = r.Start(context.Background(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "lin", "a"), Wait: waitFor(0)})
			}()
			begun := time.Now()
			<-done
			wantCode(t, closed, problem.RunnerClosed)
			if took := time.Since(begun); took > 15*time.Second {
				t.Errorf("%s: took %s", name, took)
			}
			synctest.Wait()
		})
	}
}
