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

// queued has a node a, with members, and a node z where a failure leads.
func queued(t testing.TB, members ...string) *definition.Document {
	members = append(members, `"catch":[{"codes":["QUEUE_TIMEOUT"],"target":"z","as":"why"}]`)
	return workflowWith(t, "queued", `"x-workflows-engine":{"uses":["catch","queue"]}`,
		[]string{startNode(), tool("a", members...), tool("z"), endNode()}, "s a", "a e", "z e")
}

// TestAnAttemptThatHasNoTurnFails, and is retried, while others have all places.
func TestAnAttemptThatHasNoTurnFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		x := &script{answers: answers{"long": after(time.Hour, object{})}}
		r := newRunner(t, store, graph.Options{Activities: x, Capacity: 1})
		start(t, r, "other", linear(t, "other", "long"), nil)
		begun := time.Now()
		run := start(t, r, "r", queued(t, `"queue_timeout":"5m"`, `"retry":{"max_attempts":2,"initial_interval":"1m"}`), nil)
		if p := first(run); p == nil || !p.Queued || !p.Deadline.Equal(begun.Add(5*time.Minute)) {
			t.Errorf("pending %+v", p)
		}
		for p := first(run); p != nil && p.NodeID == "a"; p = first(run) {
			time.Sleep(time.Second)
			run = status(t, r, "r")
		}
		if took := time.Since(begun); took != 11*time.Minute {
			t.Errorf("after %s", took)
		}
		run = settled(t, r, "r")
		wantStatus(t, run, machine.Completed)
		why, _ := run.FinalState["why"].(object)
		if why["code"] != string(problem.QueueTimeout) || why["message"] != "the attempt had no turn within 5m0s" || why["attempts"] != 2.0 {
			t.Errorf("caught %v", why)
		}
		rs := records(t, store, "r")
		if n := count(rs, history.ActivityFailed); n != 2 || count(rs, history.ActivityRequested) != 1 {
			t.Errorf("%v", names(rs, history.Event))
		}
	})
}

// TestNoWorkerComesInTime: a run that waits for a worker fails, also when no process was alive when its time was over. Another process fires
// the timer, although it cannot perform the node.
func TestNoWorkerComesInTime(t *testing.T) {
	t.Parallel()
	for _, members := range [][]string{
		{`"queue_timeout":"5m"`},
		{`"queue":"gpu"`, `"queue_timeout":"5m"`},
	} {
		for _, alive := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				o := graph.Options{Work: graph.WorkNone}
				r, err := graph.New(store, o)
				if err != nil {
					t.Fatal(err)
				}
				start(t, r, "r", queued(t, members...), nil)
				if !alive {
					closeRunner(t, r)
				} else {
					defer closeRunner(t, r)
				}
				time.Sleep(10 * time.Minute)
				x := &script{}
				worker := newRunner(t, store, graph.Options{Activities: x, Work: graph.WorkAll, Queues: []string{"default"}})
				time.Sleep(time.Minute)
				run := status(t, worker, "r")
				wantStatus(t, run, machine.Completed)
				if why, _ := run.FinalState["why"].(object); why["code"] != string(problem.QueueTimeout) || x.count() != 1 {
					t.Errorf("%v, process alive %v: caught %v after %d calls", members, alive, why, x.count())
				}
			})
		}
	}
}

// TestANodeIsPerformedInItsQueue: its run goes to a worker of that queue and back, wherever it was started. The definition names the queue
// of the run.
func TestANodeIsPerformedInItsQueue(t *testing.T) {
	t.Parallel()
	doc := func(t testing.TB) *definition.Document {
		return workflowWith(t, "film", `"x-workflows-engine":{"uses":["queue"],"queue":"cpu"}`,
			[]string{startNode(), tool("a"), tool("b", `"queue":"gpu"`, `"retry":{"max_attempts":3,"initial_interval":"1s"}`), tool("c"), endNode()}, "s a", "a b", "b c", "c e")
	}
	for _, work := range []graph.Work{graph.WorkNone, graph.WorkAll, graph.WorkOwn} {
		t.Run(string(work), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				cpu, gpu := &script{}, &script{answers: answers{"b": func(_ context.Context, req activities.Request) (any, error) {
					if req.Attempt < 3 {
						return nil, activities.Fail("NO", "no")
					}
					return object{"b": 1}, nil
				}}}
				front := newRunner(t, store, graph.Options{Activities: cpu, Work: work, Queues: []string{"cpu"}})
				if work == graph.WorkNone {
					newRunner(t, store, graph.Options{Activities: cpu, Work: graph.WorkAll, Queues: []string{"cpu"}})
				}
				newRunner(t, store, graph.Options{Activities: gpu, Work: graph.WorkAll, Queues: []string{"gpu"}})
				if work == graph.WorkOwn { // takes runs back
					newRunner(t, store, graph.Options{Activities: cpu, Work: graph.WorkAll, Queues: []string{"cpu"}})
				}
				time.Sleep(5 * time.Second)
				begun := time.Now()
				start(t, front, "r", doc(t), nil)
				run := settled(t, front, "r")
				for !run.Status.Terminal() {
					time.Sleep(100 * time.Millisecond)
					run = status(t, front, "r")
				}
				wantStatus(t, run, machine.Completed)
				if took := time.Since(begun); took > 20*time.Second {
					t.Errorf("took %s", took)
				}
				nodes := func(x *script) (ids []string) {
					for _, c := range x.calls {
						ids = append(ids, c.NodeID)
					}
					return ids
				}
				if a, b := nodes(cpu), nodes(gpu); !slices.Equal(a, []string{"a", "c"}) || !slices.Equal(b, []string{"b", "b", "b"}) {
					t.Errorf("workers performed %v and %v", a, b)
				}
				if e, err := store.Execution(t.Context(), "r"); err != nil || e.Queue != "cpu" {
					t.Errorf("queue %q, %v", e.Queue, err)
				}
			})
		})
	}
}

// TestWithoutQueuesOfNodesNothingMoves: a process performs the nodes that name a queue if it serves all queues, and runs without such nodes
// wherever they were started.
func TestWithoutQueuesOfNodesNothingMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(t, historymem.New(), graph.Options{Activities: &script{}})
		start(t, r, "r", queued(t, `"queue":"gpu"`), nil)
		wantStatus(t, settled(t, r, "r"), machine.Completed)
		r = newRunner(t, historymem.New(), graph.Options{Activities: &script{}, Queues: []string{"other"}})
		start(t, r, "r", linear(t, "lin", "a"), nil)
		wantStatus(t, settled(t, r, "r"), machine.Completed)
	})
}

// TestQueuesHaveTheSameNamesEverywhere: in definitions and in stores.
func TestQueuesHaveTheSameNamesEverywhere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gpu", "a.b_c-D9", "", "a b", "a/b", "ä", "a\n", strings.Repeat("x", history.MaxQueueName), strings.Repeat("x", history.MaxQueueName+1)} {
		d := workflowWith(t, "q", fmt.Sprintf(`"x-workflows-engine":{"uses":["queue"],"queue":%q}`, name), []string{startNode(), endNode()}, "s e")
		p, _ := definition.Compile(d, definition.Options{})
		if valid := history.IsQueueName(name); valid != (p != nil && p.Queue == name) {
			t.Errorf("%q: valid in a store is %v", name, valid)
		}
	}
}
