package graph_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// gauge is an executor that takes its time and counts how many attempts are in flight.
type gauge struct {
	lasts time.Duration

	mu          sync.Mutex
	now, most   int
	begun       map[string][]time.Time // by execution id
	performed   map[string]int
	firstFailed bool // the first attempt of each visit fails
}

func (g *gauge) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	g.mu.Lock()
	if g.begun == nil {
		g.begun, g.performed = map[string][]time.Time{}, map[string]int{}
	}
	g.now++
	g.most = max(g.most, g.now)
	g.begun[req.ExecutionID] = append(g.begun[req.ExecutionID], time.Now())
	g.performed[req.IdempotencyKey]++
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.now--
		g.mu.Unlock()
	}()
	_, err := after(g.lasts, nil)(ctx, req)
	if err == nil && g.firstFailed && req.Attempt == 1 {
		err = activities.Fail("NO", "not yet")
	}
	return activities.Result{Output: object{}}, err
}

func (g *gauge) inFlight() (now, most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now, g.most
}

// beganAt is when the n-th attempt of a run began.
func (g *gauge) beganAt(id string, n int) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.begun[id][n]
}

// inOrder are the runs in the order of their first attempts.
func (g *gauge) inOrder() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.SortedFunc(maps.Keys(g.begun), func(a, b string) int { return g.begun[a][0].Compare(g.begun[b][0]) })
}

func startMany(t *testing.T, r *graph.Runner, n int, nodes ...string) {
	t.Helper()
	ids, edges, last := []string{startNode()}, []string{}, "s"
	for i, node := range nodes {
		ids = append(ids, node)
		id := fmt.Sprint("n", i)
		edges, last = append(edges, last+" "+id), id
	}
	d := workflow(t, "many", append(ids, endNode()), append(edges, last+" e")...)
	for i := range n {
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: fmt.Sprint("r", i), Definition: d, Wait: waitFor(0)}); err != nil {
			t.Fatal(err)
		}
	}
}

// percentile of durations, 1 for the longest.
func percentile(ds []time.Duration, p float64) time.Duration {
	slices.Sort(ds)
	return ds[min(int(p*float64(len(ds))), len(ds)-1)]
}

// TestATimeoutDoesNotCountTheQueue has 1,000 runs wait behind a limit of 20 for twice as long as their timeout.
func TestATimeoutDoesNotCountTheQueue(t *testing.T) {
	t.Parallel()
	for _, class := range []string{"tool_call", "mcp:x"} {
		synctest.Test(t, func(t *testing.T) {
			runs := soak.Size(1000, 200, 1000)
			work := &gauge{lasts: 20 * time.Millisecond}
			store := historymem.New()
			r := newRunner(t, store, graph.Options{Activities: work, Limits: []graph.Limit{{Class: class, Concurrent: 20}}})
			began := time.Now()
			startMany(t, r, runs, tool("n0", `"timeout":"100ms"`))
			synctest.Wait()
			last := fmt.Sprint("r", runs-1)
			run := status(t, r, last)
			wantStatus(t, run, machine.Running)
			if p := run.Pending[0]; !p.Queued || p.Kind != machine.WaitActivity || !p.Deadline.IsZero() || count(records(t, store, last), history.ActivityRequested) != 0 {
				t.Errorf("pending %+v, records %v", p, names(records(t, store, last), ""))
			}
			var waits []time.Duration
			for i := range runs {
				id := fmt.Sprint("r", i)
				wantStatus(t, settled(t, r, id), machine.Completed)
				waits = append(waits, work.beganAt(id, 0).Sub(began))
			}
			if _, most := work.inFlight(); most != 20 {
				t.Errorf("%d attempts in flight at once", most)
			}
			if took := time.Since(began); took > time.Duration(runs+100)*time.Millisecond {
				t.Errorf("took %s", took)
			}
			t.Logf("%s: wait p50 %s, max %s", class, percentile(waits, .5), percentile(waits, 1))
		})
	}
}

// TestTurnsAreFairBetweenRuns has runs with hundreds of branches come before others of five nodes, one after the other: each of these has
// its turn in each round, after the branches of higher priority alone.
func TestTurnsAreFairBetweenRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		work := &gauge{lasts: 10 * time.Millisecond}
		r := newRunner(t, historymem.New(), graph.Options{Activities: work, Limits: []graph.Limit{{Class: "tool_call", Concurrent: 10}}})
		branches, runs := soak.Size(500, 300, 500), soak.Size(100, 40, 100)
		nodes, edges, entries := []string{startNode()}, []string{"s p", "p e"}, []string{}
		for i := range branches {
			id := fmt.Sprint("b", i)
			nodes, entries, edges = append(nodes, tool(id)), append(entries, id), append(edges, id+" e")
		}
		wide := workflow(t, "wide", append(nodes, fork("p", "all", entries...), endNode()), edges...)
		began := time.Now()
		for _, s := range []struct {
			id       string
			priority int
		}{{"wide", 0}, {"low", -1}, {"high", 1}} {
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: s.id, Definition: wide, Priority: s.priority, Wait: waitFor(0)}); err != nil {
				t.Fatal(err)
			}
		}
		startMany(t, r, runs, tool("n0"), tool("n1"), tool("n2"), tool("n3"), tool("n4"))
		var took []time.Duration
		for i := range runs {
			id := fmt.Sprint("r", i)
			wantStatus(t, settled(t, r, id), machine.Completed)
			took = append(took, work.beganAt(id, 4).Sub(began))
		}
		// A turn takes a millisecond, as 10 attempts of 10 ms are in flight, and a round has a turn of each run and of the branches with the
		// same priority. Every twentieth turn may be one of low priority. Behind the branches, it would be half as long again.
		turns := func(n int) time.Duration { return time.Duration(n) * time.Millisecond * 11 / 10 }
		if worst := percentile(took, 1); worst > turns(branches+5*(runs+1)) {
			t.Errorf("the last one began its last node after %s", worst)
		}
		t.Logf("%d runs of 5 nodes beside %d branches: last node begun after p50 %s, max %s", runs, 3*branches, percentile(took, .5), percentile(took, 1))
		for _, id := range []string{"wide", "low", "high"} {
			wantStatus(t, settled(t, r, id), machine.Completed)
		}
		for _, begun := range work.begun {
			slices.SortFunc(begun, time.Time.Compare)
		}
		if last := work.begun["high"][branches-1].Sub(began); last > turns(branches) {
			t.Errorf("the run of high priority began its last branch after %s", last)
		}
		if early := work.begun["low"][branches/5]; early.Before(work.begun["wide"][branches-1]) {
			t.Error("a fifth of the run of low priority has begun before the last branch of the others")
		}
	})
}

// TestLimitsHoldAfterACrash kills a process with 100 attempts in flight and 100 in the queue: the next one begins no more at once
// than its limit allows, and each has its full time.
func TestLimitsHoldAfterACrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := historymem.New()
		mortal := historytest.NewFaultStore(shared)
		first := newRunner(t, mortal, graph.Options{
			Activities: &gauge{lasts: time.Hour}, Limits: []graph.Limit{{Class: "tool_call", Concurrent: 100}},
		})
		startMany(t, first, 200, tool("n0", `"timeout":"2h"`))
		synctest.Wait()
		kill(t, first, mortal)
		work := &gauge{lasts: time.Minute}
		second := newRunner(t, shared, graph.Options{Work: graph.WorkAll, Activities: work, Capacity: -1, Limits: []graph.Limit{{Class: "mcp:x", Concurrent: 7}}})
		time.Sleep(45 * time.Second)
		synctest.Wait()
		if now, _ := work.inFlight(); now != 7 {
			t.Fatalf("%d attempts in flight", now)
		}
		queued := 0
		for i := range 200 {
			run := status(t, second, fmt.Sprint("r", i))
			wantStatus(t, run, machine.Running)
			if p := run.Pending[0]; p.Queued {
				queued++
				if !p.Deadline.IsZero() {
					t.Fatalf("the time of a queued attempt runs: %+v", p)
				}
			}
		}
		if queued != 193 {
			t.Errorf("%d queued", queued)
		}
		for i := range 200 {
			wantStatus(t, settled(t, second, fmt.Sprint("r", i)), machine.Completed)
		}
		if _, most := work.inFlight(); most != 7 {
			t.Errorf("%d attempts in flight at once", most)
		}
		for key, n := range work.performed {
			if n != 1 {
				t.Errorf("%s was performed %d times", key, n)
			}
		}
	})
}

// TestABranchInTheQueueSurvivesACrash has a branch wait for its turn beside one that waits for a signal.
func TestABranchInTheQueueSurvivesACrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := historymem.New()
		mortal := historytest.NewFaultStore(shared)
		limits := []graph.Limit{{Class: "tool_call", Concurrent: 1}}
		first := newRunner(t, mortal, graph.Options{Activities: &gauge{lasts: time.Hour}, Limits: limits})
		startMany(t, first, 1, tool("n0"))
		both := workflow(t, "both", []string{startNode(), fork("p", "all", "a", "w"), tool("a"), signalWait("w", "go"), endNode()},
			"s p", "p e", "a e", "w e")
		start(t, first, "both", both, nil)
		if got := status(t, first, "both"); got.Status != machine.Running || !got.Pending[0].Queued {
			t.Fatalf("%+v", got)
		}
		kill(t, first, mortal)
		second := newRunner(t, shared, graph.Options{Work: graph.WorkAll, Activities: &gauge{}, Limits: limits})
		time.Sleep(time.Minute)
		synctest.Wait()
		if run := status(t, second, "both"); run.Status != machine.AwaitingSignal {
			t.Errorf("%s: %+v", run.Status, run.Pending)
		}
	})
}

// TestRetriesWaitForTheirTurn has the attempts after a failure wait too, with a back-off and without one, here and in another
// process after a crash.
func TestRetriesWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	for _, backoff := range []string{"", `,"initial_interval":"1s"`} {
		for _, killed := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				shared := historymem.New()
				mortal := historytest.NewFaultStore(shared)
				work := &gauge{lasts: 3 * time.Second, firstFailed: true}
				o := graph.Options{Activities: work, Work: graph.WorkAll, Limits: []graph.Limit{{Class: "tool_call", Concurrent: 2}}}
				r := newRunner(t, mortal, o)
				startMany(t, r, 10, tool("n0", `"timeout":"4s","retry":{"max_attempts":2`+backoff+`}`))
				time.Sleep(10 * time.Second)
				synctest.Wait()
				queued := 0
				for i := range 10 {
					run := status(t, r, fmt.Sprint("r", i))
					wantStatus(t, run, machine.Running)
					if p := run.Pending[0]; p.Queued && p.Kind == machine.WaitBackoff {
						queued++
					}
				}
				if now, most := work.inFlight(); queued == 0 || now != 2 || most != 2 {
					t.Errorf("%d retries queued, %d in flight, %d at most", queued, now, most)
				}
				if killed {
					kill(t, r, mortal)
					r = newRunner(t, shared, o)
				}
				for i := range 10 {
					wantStatus(t, settled(t, r, fmt.Sprint("r", i)), machine.Completed)
				}
				if _, most := work.inFlight(); most != 2 {
					t.Errorf("%d at once", most)
				}
			})
		}
	}
}

// TestWhatLeavesTheQueueIsNotPerformed cancels a run, decides a join and lets a block time out whose attempts wait.
func TestWhatLeavesTheQueueIsNotPerformed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		exec := &script{answers: answers{"hog": after(time.Minute, nil)}}
		r := newRunner(t, historymem.New(), graph.Options{Activities: exec, Limits: []graph.Limit{{Class: "tool_call", Concurrent: 1}}})
		begin := func(id string, d ...string) {
			t.Helper()
			doc := workflow(t, id, append([]string{startNode(), endNode()}, d...), "s "+id, id+" e", "a e", "w e")
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: doc, Wait: waitFor(0)}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "hog", Definition: linear(t, "hog", "hog"), Wait: waitFor(0)}); err != nil {
			t.Fatal(err)
		}
		begin("any", fork("any", "any", "a", "w"), tool("a"), timerWait("w", "1s"))
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "gone", Definition: linear(t, "gone", "a"), Wait: waitFor(0)}); err != nil {
			t.Fatal(err)
		}
		late := workflow(t, "late", []string{startNode(), `{"id":"late","type":"parallel","config":{"join":"all","timeout":"2s","branches":[{"name":"b","entry":"a"}]}}`, tool("a"), endNode()}, "s late", "late e", "a e")
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "late", Definition: late, Wait: waitFor(0)}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "gone"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		wantStatus(t, status(t, r, "any"), machine.Completed)
		wantStatus(t, status(t, r, "gone"), machine.Cancelled)
		wantStatus(t, status(t, r, "late"), machine.Failed)
		if got := exec.keys(); len(got) != 1 {
			t.Errorf("performed %v", got)
		}
		wantStatus(t, start(t, r, "next", linear(t, "next", "a"), nil), machine.Completed)
	})
}

// TestCloseLeavesTheQueue closes a Runner whose queue is long: nothing of it is begun, and another one goes on.
func TestCloseLeavesTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, limits := historymem.New(), []graph.Limit{{Class: "tool_call", PerSecond: 2}}
		work := &gauge{}
		r := newRunner(t, store, graph.Options{Activities: work, Limits: limits})
		startMany(t, r, 100, tool("n0"))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		closeRunner(t, r)
		if n := len(work.performed); n < 20 || n > 21 {
			t.Errorf("%d begun in 10 s", n)
		}
		next := newRunner(t, store, graph.Options{Activities: work, Limits: limits, Work: graph.WorkAll})
		for i := range 100 {
			wantStatus(t, settled(t, next, fmt.Sprint("r", i)), machine.Completed)
		}
		var at []time.Time
		for _, ts := range work.begun {
			at = append(at, ts...)
		}
		slices.SortFunc(at, time.Time.Compare)
		for i := range at[:len(at)-3] {
			if d := at[i+3].Sub(at[i]); d < time.Second && i > 21 {
				t.Fatalf("four starts within %s", d)
			}
		}
	})
}

// TestTwoProcessesKeepTheirOwnLimits has two processes work on one store.
func TestTwoProcessesKeepTheirOwnLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		var gauges [2]*gauge
		var rs [2]*graph.Runner
		for i := range rs {
			gauges[i] = &gauge{lasts: 50 * time.Millisecond, firstFailed: true}
			rs[i] = newRunner(t, store, graph.Options{
				Activities: gauges[i], Work: graph.WorkAll, Limits: []graph.Limit{{Class: "tool_call", Concurrent: 3 + i}},
			})
		}
		d := workflow(t, "two", []string{startNode(), tool("a", `"retry":{"max_attempts":2,"initial_interval":"10ms"}`), endNode()}, "s a", "a e")
		for i := range 400 {
			if _, err := rs[i%2].Start(t.Context(), graph.StartRequest{ExecutionID: fmt.Sprint("r", i), Definition: d, Wait: waitFor(0)}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 400 {
			wantStatus(t, settled(t, rs[i%2], fmt.Sprint("r", i)), machine.Completed)
		}
		for i, g := range gauges {
			if g.most != 3+i {
				t.Errorf("process %d had %d in flight at once", i, g.most)
			}
		}
		for key, n := range gauges[0].performed {
			if n += gauges[1].performed[key]; n != 1 {
				t.Errorf("%s was performed %d times", key, n)
			}
		}
	})
}

func TestLimitsAreChecked(t *testing.T) {
	t.Parallel()
	for _, limits := range [][]graph.Limit{
		{{Concurrent: 1}}, {{Class: "step"}}, {{Class: "step", Concurrent: -1}}, {{Class: "step", PerSecond: -1}},
		{{Class: "step", Concurrent: 1}, {Class: "step", PerSecond: 1}},
	} {
		_, err := graph.New(historymem.New(), graph.Options{Limits: limits})
		wantCode(t, err, problem.UsageError)
	}
}

// TestADrainLeavesTheQueueToOthers drains a process with attempts in the queue: it begins none of them, and another process does so
// before the draining is over.
func TestADrainLeavesTheQueueToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, limits := historymem.New(), []graph.Limit{{Class: "tool_call", Concurrent: 2}}
		first := &gauge{lasts: 20 * time.Second}
		r := newRunner(t, store, graph.Options{Activities: first, Limits: limits, Drain: time.Minute})
		startMany(t, r, 10, tool("n0"))
		synctest.Wait()
		second := &gauge{lasts: time.Second}
		next := newRunner(t, store, graph.Options{Activities: second, Limits: limits, Work: graph.WorkAll})
		time.Sleep(5 * time.Second)
		closeRunner(t, r)
		synctest.Wait()
		if len(first.performed) != 2 || len(second.performed) != 8 {
			t.Errorf("%d attempts here, %d there", len(first.performed), len(second.performed))
		}
		for i := range 10 {
			wantStatus(t, settled(t, next, fmt.Sprint("r", i)), machine.Completed)
		}
		if second.most != 2 || len(second.performed) != 8 {
			t.Errorf("%d at once, %d performed", second.most, len(second.performed))
		}
	})
}
