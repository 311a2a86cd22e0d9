package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
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
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// commits counts the commits of runs through a store.
type commits struct {
	history.Store
	appends, offers, claims, found atomic.Int64
}

func counted(s history.Store) (history.Store, *commits) {
	c := &commits{Store: s}
	return history.Wrap(c, s), c
}

func (c *commits) Append(ctx context.Context, b history.Batch) error {
	c.appends.Add(1)
	return c.Store.Append(ctx, b)
}

func (c *commits) queue() history.Queue {
	q, _ := history.As[history.Queue](c.Store)
	return q
}

func (c *commits) ClaimReady(ctx context.Context, r history.ReadyClaim) ([]string, error) {
	ids, err := c.queue().ClaimReady(ctx, r)
	if len(ids) > 0 {
		c.claims.Add(1)
		c.found.Add(int64(len(ids)))
	}
	return ids, err
}

func (c *commits) Offer(ctx context.Context, process string, runs ...history.Offer) error {
	c.offers.Add(1)
	return c.queue().Offer(ctx, process, runs...)
}

func (c *commits) Lanes(ctx context.Context) ([]history.LaneUse, error) { return c.queue().Lanes(ctx) }

func (c *commits) Place(ctx context.Context, id string) (history.Place, bool, error) {
	return c.queue().Place(ctx, id)
}

func (c *commits) ReadyIn(ctx context.Context, l history.Lane, limit int) ([]string, error) {
	return c.queue().ReadyIn(ctx, l, limit)
}

func (c *commits) WatchReady(ctx context.Context, wake func()) error {
	return c.queue().WatchReady(ctx, wake)
}

// total returns the number of attempts that a gauge has begun, and fails the test if one was performed twice.
func (g *gauge) total(t *testing.T) (n int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, times := range g.performed {
		if times > 1 {
			t.Errorf("attempt %s was performed %d times", key, times)
		}
		n += times
	}
	return n
}

// wantCompleted checks that runs r0, r1, … have completed.
func wantCompleted(t *testing.T, r *graph.Runner, n int) {
	t.Helper()
	for i := range n {
		wantStatus(t, settled(t, r, fmt.Sprint("r", i)), machine.Completed)
	}
}

// TestWorkersShare starts 100 runs in one of two workers, each of which performs two attempts at once. Each performs about half of them, in
// about half the time.
func TestWorkersShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lasts, runs = time.Second, 100
		store := historymem.New()
		a, b := &gauge{lasts: lasts}, &gauge{lasts: lasts}
		first := newRunner(t, store, graph.Options{Activities: a, Work: graph.WorkAll, Capacity: 2})
		newRunner(t, store, graph.Options{Activities: b, Work: graph.WorkAll, Capacity: 2})
		time.Sleep(5 * time.Second)
		begun := time.Now()
		startMany(t, first, runs, tool("n0"))
		wantCompleted(t, first, runs)
		took, ideal := time.Since(begun), runs/4*lasts
		if na, nb := a.total(t), b.total(t); na+nb != runs || nb < 45 || nb > 55 {
			t.Errorf("one worker performed %d attempts, the other %d", na, nb)
		}
		if took > ideal*11/10 {
			t.Errorf("%s, ideal %s", took, ideal)
		}
		if a.most > 2 || b.most > 2 {
			t.Errorf("%d and %d at once", a.most, b.most)
		}
	})
}

// TestFront starts 1,000 runs in a process without executors. Two workers perform them; none fails, and the front process makes one commit for
// each.
func TestFront(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const runs = 1000
		store := historymem.New()
		fronts, made := counted(store)
		front := newRunner(t, fronts, graph.Options{Work: graph.WorkNone})
		startMany(t, front, runs, tool("n0"), tool("n1"))
		if n := made.appends.Load(); n != runs {
			t.Errorf("%d commits of the front process", n)
		}
		run := status(t, front, "r7")
		if r := run.Ready; r == nil || r.Lane.String() != "default/tool_call:x" || r.Ahead != 7 || r.Workers != 0 || run.Status != machine.Running {
			t.Errorf("status of a waiting run: %s, %+v", run.Status, r)
		}
		if run.Lacks != nil {
			t.Errorf("the front process lacks %+v", run.Lacks)
		}
		a, b := &gauge{lasts: time.Second}, &gauge{lasts: time.Second}
		workers, shared := counted(store)
		newRunner(t, workers, graph.Options{Activities: a, Work: graph.WorkAll})
		newRunner(t, workers, graph.Options{Activities: b, Work: graph.WorkAll})
		wantCompleted(t, front, runs)
		if na, nb := a.total(t), b.total(t); na+nb != 2*runs || min(na, nb) < runs/2 {
			t.Errorf("one worker performed %d attempts, the other %d", na, nb)
		}
		// Two requests and the end of each run, and a few more where the second attempt of a run finds no place.
		if n, of := shared.appends.Load(), int64(3*runs)*21/20; n > of {
			t.Errorf("%d commits of the workers, want %d", n, of)
		}
		if n, found := shared.claims.Load(), shared.found.Load(); found < runs || found > runs*21/20 || n > runs/4 {
			t.Errorf("%d claims for %d runs", n, found)
		}
	})
}

// TestFullQueue: a start that would wait in a full lane is refused and leaves nothing; other lanes, answers, signals and subworkflows are not
// refused. Workers that take runs make room, also below the bound and between two counts.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		front := newRunner(t, store, graph.Options{Work: graph.WorkNone, MaxQueued: 10})
		refused := func(id string, d *definition.Document, queue string) {
			t.Helper()
			_, err := front.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Queue: queue, Wait: waitFor(0)})
			wantCode(t, err, problem.QueueFull)
			if _, err := store.Execution(t.Context(), id); !errors.Is(err, problem.ExecutionNotFound) {
				t.Errorf("the refused run is stored: %v", err)
			}
		}
		begin := func(id string, d *definition.Document, queue string) {
			t.Helper()
			if _, err := front.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Queue: queue, Wait: waitFor(0)}); err != nil {
				t.Fatal(err)
			}
		}
		d := linear(t, "lin", "n0")
		asks := workflow(t, "asks", []string{startNode(), interrupt("q"), tool("a"), endNode()}, "s q", "q a", "a e")
		begin("asks", asks, "")
		for i := range 10 {
			begin(fmt.Sprint("r", i), d, "")
		}
		refused("r10", d, "")
		begin("r10", d, "gpu") // another lane
		if _, err := front.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "asks", Payload: object{"ok": true}}); err != nil {
			t.Errorf("the answer is refused: %v", err)
		}
		time.Sleep(2 * time.Second)
		refused("r11", d, "")
		work := &gauge{lasts: time.Second}
		newRunner(t, store, graph.Options{Activities: work, Work: graph.WorkAll})
		time.Sleep(5 * time.Second)
		for i := 12; i < 112; i++ { // more than the bound within a second, but workers take them
			begin(fmt.Sprint("r", i), d, "")
			time.Sleep(10 * time.Millisecond)
		}
		wantStatus(t, settled(t, front, "r111"), machine.Completed)
	})
}

// TestFrontAnswers answers a question and sends a signal in a process without executors. A worker performs what follows.
func TestFrontAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		front := newRunner(t, store, graph.Options{Work: graph.WorkNone})
		work := &gauge{lasts: time.Second}
		newRunner(t, store, graph.Options{Activities: work, Work: graph.WorkAll})
		d := workflow(t, "asks", []string{startNode(), interrupt("q"), tool("a"), signalWait("w", "go"), tool("b"), endNode()}, "s q", "q a", "a w", "w b", "b e")
		start(t, front, "r0", d, nil)
		if _, err := front.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r0", Payload: object{"ok": true}}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, settled(t, front, "r0"), machine.AwaitingSignal)
		if _, err := front.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r0", Name: "go"}); err != nil {
			t.Fatal(err)
		}
		wantCompleted(t, front, 1)
		if n := work.total(t); n != 2 {
			t.Errorf("%d attempts", n)
		}
	})
}

// TestPriorityAcrossProcesses queues 1,000 runs of priority 0 and one of 100: that one is next, wherever it was started.
func TestPriorityAcrossProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const runs = 1000
		store := historymem.New()
		a, b := &gauge{lasts: time.Second}, &gauge{lasts: time.Second}
		first := newRunner(t, store, graph.Options{Activities: a, Work: graph.WorkAll, Capacity: 2})
		second := newRunner(t, store, graph.Options{Activities: b, Work: graph.WorkAll, Capacity: 2})
		time.Sleep(5 * time.Second)
		startMany(t, first, runs, tool("n0"))
		time.Sleep(10*time.Second + 500*time.Millisecond)
		for i, r := range []*graph.Runner{first, second} {
			id, begun := fmt.Sprint("urgent", i), time.Now()
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: linear(t, "urgent", "n0"), Priority: 100, Wait: waitFor(0)}); err != nil {
				t.Fatal(err)
			}
			wantStatus(t, settled(t, first, id), machine.Completed)
			if took := time.Since(begun); took > 2500*time.Millisecond {
				t.Errorf("the urgent run ended after %s", took)
			}
		}
		wantCompleted(t, first, runs)
		if n := a.total(t) + b.total(t); n != runs+2 {
			t.Errorf("%d attempts", n)
		}
	})
}

// TestFairness starts 900 runs of one customer and then 100 of another. The customers take turns.
func TestFairness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		front := newRunner(t, store, graph.Options{Work: graph.WorkNone, FairLabel: "customer"})
		d := linear(t, "lin", "n0")
		begin := func(customer string, n int) {
			for i := range n {
				_, err := front.Start(t.Context(), graph.StartRequest{
					ExecutionID: fmt.Sprint(customer, i), Definition: d, Labels: map[string]string{"customer": customer}, Wait: waitFor(0),
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		begin("big", 900)
		begin("small", 100)
		work := &gauge{lasts: time.Second}
		newRunner(t, store, graph.Options{Activities: work, Work: graph.WorkAll, Capacity: 10})
		for i := range 100 {
			wantStatus(t, settled(t, front, fmt.Sprint("small", i)), machine.Completed)
		}
		last := 0
		for i, id := range work.inOrder() {
			if strings.HasPrefix(id, "small") {
				last = i
			}
		}
		if last > 210 {
			t.Errorf("the last run of the small customer was number %d, ideal 200", last)
		}
		for i := range 900 {
			wantStatus(t, settled(t, front, fmt.Sprint("big", i)), machine.Completed)
		}
	})
}

// TestQueuesDivideWorkers starts runs in two queues, of which a worker serves one each.
func TestQueuesDivideWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		front := newRunner(t, store, graph.Options{Work: graph.WorkNone})
		usual, gpu := &gauge{lasts: time.Second}, &gauge{lasts: time.Second}
		newRunner(t, store, graph.Options{Activities: usual, Work: graph.WorkAll, Queues: []string{history.DefaultQueue}})
		newRunner(t, store, graph.Options{Activities: gpu, Work: graph.WorkAll, Queues: []string{"gpu"}})
		for i := range 20 {
			req := graph.StartRequest{ExecutionID: fmt.Sprint("r", i), Definition: linear(t, "lin", "n0"), Wait: waitFor(0)}
			if i%4 == 0 {
				req.Queue = "gpu"
			}
			if _, err := front.Start(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		}
		wantCompleted(t, front, 20)
		if u, g := usual.total(t), gpu.total(t); u != 15 || g != 5 {
			t.Errorf("%d attempts in the usual queue, %d in the other", u, g)
		}
	})
}

// TestQueuesHoldForOrphans: a worker does not take over the runs of queues that it does not serve, nor what follows their timers. A worker that serves
// them does.
func TestQueuesHoldForOrphans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		front := newRunner(t, store, graph.Options{Work: graph.WorkNone})
		gpu := &gauge{lasts: time.Minute, firstFailed: true}
		first := newRunner(t, store, graph.Options{Activities: gpu, Work: graph.WorkAll, Queues: []string{"gpu"}})
		d := workflow(t, "retries", []string{startNode(), `{"id":"n0","type":"tool_call","retry":{"max_attempts":2,"initial_interval":"5m"},"config":{"server":"x","tool":"y"}}`, endNode()}, "s n0", "n0 e")
		begin := func(id string) {
			t.Helper()
			if _, err := front.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Queue: "gpu", Wait: waitFor(0)}); err != nil {
				t.Fatal(err)
			}
		}
		begin("pauses")
		time.Sleep(2 * time.Minute) // its first attempt has failed
		begin("inflight")
		time.Sleep(10 * time.Second)
		closeRunner(t, first)
		other := &gauge{lasts: time.Second}
		newRunner(t, store, graph.Options{Activities: other, Work: graph.WorkAll, Queues: []string{"cpu", history.DefaultQueue}})
		time.Sleep(20 * time.Minute)
		if n := other.total(t); n > 0 {
			t.Errorf("a worker of other queues has performed %d attempts", n)
		}
		if r := status(t, front, "inflight").Ready; r == nil || r.Lane.Queue != "gpu" {
			t.Errorf("the run does not wait in its queue: %+v", r)
		}
		second := &gauge{lasts: time.Second}
		newRunner(t, store, graph.Options{Activities: second, Work: graph.WorkAll, Queues: []string{"gpu"}})
		for _, id := range []string{"pauses", "inflight"} {
			wantStatus(t, settled(t, front, id), machine.Completed)
		}
	})
}

// TestCommitsOfARun performs a run of n activities where it was started: n + 1 commits.
func TestCommitsOfARun(t *testing.T) {
	t.Parallel()
	for _, o := range []graph.Options{{}, {Work: graph.WorkAll}, {Capacity: -1}, {Work: graph.WorkAll, Capacity: 1}} {
		store, made := counted(historymem.New())
		o.Activities = &script{}
		r := newRunner(t, store, o)
		wantStatus(t, start(t, r, "r", linear(t, "lin", "a", "b", "c", "d"), nil), machine.Completed)
		if n := made.appends.Load(); n != 5 || made.offers.Load()+made.claims.Load() > 0 {
			t.Errorf("work %q, capacity %d: %d commits, %d offers, %d claims", o.Work, o.Capacity, n, made.offers.Load(), made.claims.Load())
		}
	}
}

// TestCallsOfAStart counts the calls of a store from a start in a front process until a worker begins the step. The worker's definition is known.
func TestCallsOfAStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		there, here := historytest.NewFaultStore(store), historytest.NewFaultStore(store)
		front := newRunner(t, there, graph.Options{Work: graph.WorkNone})
		var begun []string
		newRunner(t, here, graph.Options{Work: graph.WorkAll, Activities: activities.ExecutorFunc(func(context.Context, activities.Request) (activities.Result, error) {
			begun = here.Calls()
			return activities.Result{}, nil
		})})
		time.Sleep(5 * time.Second)
		for i := range 8 {
			time.Sleep(90 * time.Millisecond)
			there.Set(historytest.Fault{Reads: true})
			here.Set(historytest.Fault{Reads: true})
			if _, err := front.Start(t.Context(), graph.StartRequest{ExecutionID: fmt.Sprint("r", i), Definition: linear(t, "lin", "n0"), Wait: waitFor(0)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			periodic := func(call string) bool {
				return slices.Contains([]string{"ClaimReady", "Overview", "Describe", "SharedLimits"}, call)
			}
			started, begun := slices.DeleteFunc(there.Calls(), periodic), slices.DeleteFunc(begun, periodic)
			if i > 0 && (!slices.Equal(started, []string{"Append", "Place"}) || !slices.Equal(begun, []string{"Read", "Append"})) {
				t.Errorf("run %d: the front makes the calls %v, the worker, besides claims, %v", i, started, begun)
			}
		}
	})
}

// TestIdleWorkers counts the questions of ten workers without work: about one a second each, and a renewal of each lease in ten seconds.
func TestIdleWorkers(t *testing.T) {
	t.Parallel()
	const workers, minutes = 10, 10
	for kind, open := range stores {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var watched []*historytest.FaultStore
				shared := open(t)
				for i := range workers {
					s := historytest.NewFaultStore(shared[i%len(shared)])
					watched = append(watched, s)
					newRunner(t, s, graph.Options{Activities: &script{}, Work: graph.WorkAll})
				}
				time.Sleep(time.Minute)
				for _, s := range watched {
					s.Set(historytest.Fault{Reads: true})
				}
				time.Sleep(minutes * time.Minute)
				for _, s := range watched {
					calls := map[string]int{}
					for _, call := range s.Calls() {
						calls[call]++
					}
					if n := len(s.Calls()); n > minutes*60*6/5 || calls["Overview"] < minutes*60-10 {
						t.Errorf("%d questions in %d minutes: %v", n, minutes, calls)
					}
				}
			})
		})
	}
}

// TestCapacity starts more runs than one process performs at once; it has no other process.
func TestCapacity(t *testing.T) {
	t.Parallel()
	for capacity, want := range map[int]int{0: 100, 3: 3, -1: 150} {
		synctest.Test(t, func(t *testing.T) {
			store, made := counted(historymem.New())
			work := &gauge{lasts: time.Second}
			r := newRunner(t, store, graph.Options{Activities: work, Work: graph.WorkAll, Capacity: capacity})
			startMany(t, r, 150, tool("n0"))
			wantCompleted(t, r, 150)
			if _, most := work.inFlight(); most != want || work.total(t) != 150 {
				t.Errorf("capacity %d: %d at once, %d in all", capacity, most, work.total(t))
			}
			if n := made.offers.Load() + made.claims.Load(); n > 0 {
				t.Errorf("capacity %d: %d offers and claims by a process alone", capacity, n)
			}
		})
	}
}

// TestProcesses lists a worker with its load.
func TestProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		r := newRunner(t, store, graph.Options{Activities: &gauge{lasts: time.Minute}, Work: graph.WorkAll, Capacity: 2, Version: "1.2.3", Owner: "w"})
		startMany(t, r, 3, tool("n0"))
		time.Sleep(5 * time.Second)
		ps, err := r.Processes(t.Context())
		if err != nil || len(ps) != 1 {
			t.Fatalf("%+v, %v", ps, err)
		}
		p := ps[0]
		if p.Runs != 3 || p.InFlight != 2 || p.Waiting != 1 || !p.Full || p.Capacity != 2 || p.Version != "1.2.3" || p.Work != "all" || p.PID == 0 || p.Host == "" {
			t.Errorf("%+v", p)
		}
		if want := []string{"llm_call", "step", "tool_call"}; !slices.Equal(p.Performs, want) {
			t.Errorf("it performs %q, want %q", p.Performs, want)
		}
		if !p.Serves(history.Lane{Queue: "any", Needs: "tool_call:x"}) || p.Serves(history.Lane{Queue: "any", Needs: "a2a:x"}) {
			t.Error("the lanes served are wrong")
		}
	})
}

// TestANewWorkerIsSeen lists a worker with its description as soon as it looks for runs.
func TestANewWorkerIsSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(t, historymem.New(), graph.Options{Activities: &gauge{}, Work: graph.WorkAll})
		time.Sleep(300 * time.Millisecond)
		if ps, err := r.Processes(t.Context()); err != nil || len(ps) != 1 || ps[0].Work != "all" || ps[0].PID == 0 {
			t.Fatalf("%+v, %v", ps, err)
		}
	})
}

// TestLimitedWorkersShare has two workers with limits of their own, below their capacity: each takes no more runs than it performs soon.
func TestLimitedWorkersShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const runs = 400
		store, made := counted(historymem.New())
		limits := []graph.Limit{{Class: "tool_call", Concurrent: 2}}
		a, b := &gauge{lasts: time.Second}, &gauge{lasts: time.Second}
		first := newRunner(t, store, graph.Options{Activities: a, Work: graph.WorkAll, Limits: limits})
		newRunner(t, store, graph.Options{Activities: b, Work: graph.WorkAll, Limits: limits})
		time.Sleep(5 * time.Second)
		begun := time.Now()
		startMany(t, first, runs, tool("n0"))
		wantCompleted(t, first, runs)
		if na, nb := a.total(t), b.total(t); na+nb != runs || min(na, nb) < runs*2/5 {
			t.Errorf("one worker performed %d attempts, the other %d", na, nb)
		}
		if took := time.Since(begun); took > runs/4*time.Second*6/5 {
			t.Errorf("%d runs took %s", runs, took)
		}
		t.Logf("%d offers, %d runs in %d claims", made.offers.Load(), made.found.Load(), made.claims.Load())
		if n := made.found.Load(); n > 6*runs {
			t.Errorf("%d runs were claimed %d times", runs, n)
		}
	})
}

// TestAFullWorkerTakesOver kills a worker beside a full one, while 200 runs wait for a worker. The full one goes on with the runs of the other at the
// next free places, before those that wait.
func TestAFullWorkerTakesOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const capacity, runs = 4, 200
		store := historymem.New()
		mortal := historytest.NewFaultStore(store)
		work := &gauge{lasts: 730 * time.Millisecond} // not in step with the searches
		first := newRunner(t, mortal, graph.Options{Activities: &gauge{lasts: time.Hour}, Work: graph.WorkAll, Capacity: capacity, LeaseTTL: 3 * time.Second})
		for i := range capacity {
			if _, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: fmt.Sprint("killed", i), Definition: linear(t, "lin", "n0"), Wait: waitFor(0)}); err != nil {
				t.Fatal(err)
			}
		}
		second := newRunner(t, store, graph.Options{Activities: work, Work: graph.WorkAll, Capacity: capacity, LeaseTTL: 3 * time.Second})
		startMany(t, newRunner(t, store, graph.Options{Work: graph.WorkNone}), runs, tool("n0"))
		time.Sleep(1500 * time.Millisecond)
		killed := time.Now()
		kill(t, first, mortal)
		for i := range capacity {
			wantStatus(t, settled(t, second, fmt.Sprint("killed", i)), machine.Completed)
		}
		if took := time.Since(killed); took > 7*time.Second {
			t.Errorf("the runs of the killed worker ended after %s", took)
		}
		wantCompleted(t, second, runs)
		if n := work.total(t); n != runs+capacity {
			t.Errorf("%d attempts", n)
		}
	})
}
