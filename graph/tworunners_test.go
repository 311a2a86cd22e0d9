package graph_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
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

// TestTwoRunners has the runners of two processes over one store, and calls of every kind through either, one after the
// other and two at once, while now and then one of the processes dies. A call that is refused must be explained by the
// run: what it answers was not awaited the whole time. In the end every run ends, with each outcome recorded once. In half
// of the plays either process lacks something that the other one has, and nobody performs what it lacks.
func TestTwoRunners(t *testing.T) {
	t.Parallel()
	var calls, refused, deaths, splits atomic.Int64
	seeds := plays{usual: 60, race: 20, soak: 5_000}.each(t, func(t *testing.T, seed uint64) {
		p := newPair(t, seed, false)
		p.play()
		calls.Add(int64(p.calls))
		refused.Add(int64(p.refused))
		deaths.Add(int64(p.deaths))
		if p.split {
			splits.Add(1)
		}
	})
	t.Logf("%d seeds, %d with split abilities: %d calls, %d refused, all explained; %d deaths",
		seeds, splits.Load(), calls.Load(), refused.Load(), deaths.Load())
	if !t.Failed() && (refused.Load() == 0 || deaths.Load() == 0 || splits.Load() == 0) {
		t.Error("the calls do not exercise what they should")
	}
}

// TestTwoRunnersWithFaults plays the same while the machine's clock is set forward and back, and single calls of the store fail, before
// they take effect or after. Every run ends all the same, and nothing is performed again but what a death or a failed call explains.
func TestTwoRunnersWithFaults(t *testing.T) {
	t.Parallel()
	var failed, steps atomic.Int64
	seeds := plays{usual: 30, race: 10, soak: 5_000}.each(t, func(t *testing.T, seed uint64) {
		p := newPair(t, seed, true)
		p.play()
		failed.Add(int64(p.failed))
		steps.Add(int64(p.steps))
	})
	t.Logf("%d seeds: %d calls of the store failed, the clock stepped %d times", seeds, failed.Load(), steps.Load())
	if !t.Failed() && (failed.Load() == 0 || steps.Load() == 0) {
		t.Error("nothing was disturbed")
	}
}

// pair is two processes and what they share.
type pair struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	store   history.Store
	runners [2]*graph.Runner
	faults  [2]*historytest.FaultStore
	doc     *definition.Document
	child   *definition.Document
	mode    machine.Mode
	// split says that the processes have different abilities; lacks are the nodes that each cannot perform or begin.
	split bool
	lacks [2]map[string]bool
	// faulty says that calls of the store fail and the clock steps; set is how far the clock is ahead.
	faulty        bool
	set           atomic.Int64
	failed, steps int

	mu                     sync.Mutex
	log                    []string
	performed              map[string]int
	calls, refused, deaths int
}

func newPair(t *testing.T, seed uint64, faulty bool) *pair {
	p := &pair{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 5)), faulty: faulty, performed: map[string]int{}}
	begun := time.Now()
	p.store = historymem.NewWith(historymem.Options{
		Now:    func() time.Time { return time.Now().Add(time.Duration(p.set.Load())) },
		Uptime: func() (string, time.Duration) { return "boot", time.Since(begun) },
	})
	p.mode = []machine.Mode{machine.InProcess, machine.HostMediated}[p.rng.IntN(2)]
	join := []string{"all", "any"}[p.rng.IntN(2)]
	p.doc = workflow(t, "pair", []string{
		startNode(), tool("a", `"retry":{"max_attempts":3,"initial_interval":"1s"}`), fork("p", join, "l", "w1", "v"),
		tool("l"), timerWait("lt", "3s"), tool("l2"), signalWait("w1", "go"), tool("w2"), signalWait("w3", "stop"), subworkflow("v", "urn:child"),
		interrupt("i"), signalWait("w4", "go"), delegateNode("d"), endNode(),
	}, "s a", "a p", "p i", "l lt", "lt l2", "l2 i", "w1 w2", "w2 w3", "w3 i", "v i", "i w4", "w4 d", "d e")
	p.child = workflow(t, "child", []string{startNode(), tool("c"), signalWait("cw", "stop"), tool("c2"), endNode()}, "s c", "c cw", "cw c2", "c2 e")
	p.split = p.rng.IntN(2) == 0
	for i := range p.lacks {
		p.lacks[i] = map[string]bool{}
	}
	for _, node := range []string{"a", "l", "l2", "w2", "v", "d", "c", "c2"} {
		if i := p.rng.IntN(3); p.split && i < len(p.lacks) {
			p.lacks[i][node] = true
		}
	}
	for i := range p.runners {
		p.open(i)
	}
	return p
}

// member is what one of the processes performs activities with.
type member struct {
	activities.Executor
	lacks map[string]bool
}

func (m member) Capabilities(n activities.Node) activities.Capabilities {
	name, _ := n.Config["tool"].(string)
	return performs(!m.lacks[name])
}

func (p *pair) open(i int) {
	p.t.Helper()
	p.faults[i] = historytest.NewFaultStore(p.store)
	p.runners[i] = p.runner(p.faults[i], fmt.Sprintf("%d.%d", i, p.deaths), p.lacks[i])
}

// runner begins a process that lacks some nodes.
func (p *pair) runner(store history.Store, owner string, lacks map[string]bool) *graph.Runner {
	p.t.Helper()
	o := graph.Options{
		Activities: member{activities.ExecutorFunc(func(ctx context.Context, req activities.Request) (activities.Result, error) {
			p.mu.Lock()
			p.log = append(p.log, fmt.Sprintf("%v process %s performs %s", time.Now().Format("05.000"), owner, req.IdempotencyKey))
			p.mu.Unlock()
			if lacks[req.NodeID] {
				p.t.Errorf("seed %d: process %s is to perform %s", p.seed, owner, req.IdempotencyKey)
			}
			return p.execute(ctx, req)
		}), lacks},
		DefaultMode: p.mode, LeaseTTL: 3 * time.Second, Work: graph.WorkAll, Owner: owner,
	}
	if !lacks["d"] {
		o.Delegates = activities.ExecutorFunc(func(ctx context.Context, _ activities.Request) (activities.Result, error) {
			_, err := after(time.Second, nil)(ctx, activities.Request{})
			return activities.Result{Output: object{"d": 1}}, err
		})
	}
	if p.seed%3 == 0 {
		o = graph.InStretches(o, 1) // of one visit
	}
	r, err := graph.New(store, o)
	if err != nil {
		p.t.Fatal(err)
	}
	if !lacks["v"] {
		register(p.t, r, "urn:child", p.child)
	}
	return r
}

func (p *pair) execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	p.mu.Lock()
	p.performed[req.IdempotencyKey]++
	p.mu.Unlock()
	if _, err := after(time.Duration(len(req.NodeID))*700*time.Millisecond, nil)(ctx, req); err != nil {
		return activities.Result{}, err
	}
	if req.NodeID == "a" && req.Attempt < 2 {
		return activities.Result{}, errors.New("not at first")
	}
	return activities.Result{Output: object{req.NodeID: req.Visit}}, nil
}

func (p *pair) fatalf(format string, args ...any) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.executions() {
		p.log = append(p.log, fmt.Sprint(e.ID, ": ", names(records(p.t, p.store, e.ID), "")))
	}
	text := ""
	for _, l := range p.log {
		text += "\n" + l
	}
	p.t.Fatalf("seed %d, %s: %s%s", p.seed, p.mode, fmt.Sprintf(format, args...), text)
}

func (p *pair) executions() map[string]history.Execution {
	page, err := p.store.List(context.Background(), history.ListQuery{Limit: 100})
	if err != nil {
		p.t.Fatal(err)
	}
	all := map[string]history.Execution{}
	for _, e := range page.Executions {
		all[e.ID] = e
	}
	return all
}

// awaited lists what the runs wait for from outside, by the names that calls use.
func (p *pair) awaited() map[string]bool {
	all := map[string]bool{}
	runs := p.executions()
	for id, e := range runs {
		parent := runs[e.Parent]
		left := e.Parent != "" && !slices.ContainsFunc(parent.Waits, func(w history.Wait) bool { return w.ChildExecutionID == id })
		if left {
			continue // nobody waits for the subworkflow any more; it is about to be cancelled
		}
		for _, w := range e.Waits {
			switch w.Kind {
			case history.WaitSignal:
				all["signal "+w.SignalName] = true
			case history.WaitInterrupt:
				all["resume"] = true
			case history.WaitActivity:
				if !w.InProcess() {
					all[fmt.Sprintf("submit %s:%s#%d.%d", id, w.NodeID, max(w.Visit, 1), max(w.Attempt, 1))] = true
				}
			}
		}
	}
	return all
}

func (p *pair) play() {
	p.start()
	cancelAt := -1
	if p.rng.IntN(5) == 0 {
		cancelAt = p.rng.IntN(25)
	}
	for step := 0; !p.executions()["r"].Phase.Terminal(); step++ {
		if step > 500 {
			p.fatalf("the run does not end")
		}
		if p.faulty {
			p.disturb()
		}
		switch {
		case step == cancelAt:
			p.call("cancel", p.pick(), func(r *graph.Runner) error {
				_, err := r.Cancel(context.Background(), graph.CancelRequest{ExecutionID: "r", Reason: "enough"})
				return err
			})
		case p.rng.IntN(12) == 0 && p.deaths < 4 && !p.clockOnly():
			p.die(p.rng.IntN(2))
		case p.rng.IntN(4) == 0: // two at once
			var both sync.WaitGroup
			for i := range p.runners {
				do := p.draw(i)
				both.Go(do)
			}
			both.Wait()
		default:
			p.draw(p.pick())()
		}
		if p.rng.IntN(2) == 0 {
			time.Sleep(time.Duration(p.rng.IntN(2500)) * time.Millisecond)
		}
		synctest.Wait()
	}
	for _, f := range p.faults {
		f.Revive()
	}
	time.Sleep(30 * time.Second) // what a death has left over
	for _, r := range p.runners {
		closeRunner(p.t, r)
	}
	p.check()
}

// clockOnly says that nothing is disturbed but the clock, so that nothing may be performed again.
func (p *pair) clockOnly() bool { return p.faulty && p.seed%2 == 0 }

// disturb sets the clock, or has a call of the store fail soon.
func (p *pair) disturb() {
	const hour = int64(time.Hour)
	i := p.pick()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.rng.IntN(8) {
	case 0:
		p.set.Store([]int64{-hour, 0, hour}[p.rng.IntN(3)])
		p.steps++
		p.log = append(p.log, fmt.Sprintf("%v the clock is %v ahead", time.Now().Format("05.000"), time.Duration(p.set.Load())))
	case 1:
		if p.failed < 6 && !p.clockOnly() {
			f := historytest.Fault{At: 1 + p.rng.IntN(5), Reads: p.rng.IntN(2) == 0, AfterCommit: p.rng.IntN(2) == 0}
			p.faults[i].Set(f)
			p.failed++
			p.log = append(p.log, fmt.Sprintf("%v process %d: %+v", time.Now().Format("05.000"), i, f))
		}
	}
}

func (p *pair) pick() int { return p.rng.IntN(2) }

// start begins the run, which fails for want of nothing: a process that lacks something is not the one that starts it.
func (p *pair) start() {
	r := p.runners[0]
	if p.split {
		r = p.runner(p.store, "starter", nil)
		defer closeRunner(p.t, r)
		p.deaths++ // what it performs is performed again
	}
	_, err := r.Start(context.Background(), graph.StartRequest{ExecutionID: "r", Definition: p.doc, Wait: graph.Wait{Limit: graph.NoWait}})
	if err != nil {
		p.fatalf("start: %v", err)
	}
}

// draw chooses a call: mostly something that a run waits for, sometimes anything.
func (p *pair) draw(i int) func() {
	ctx := context.Background()
	caller := graph.Caller{Wait: graph.WaitAtMost(time.Duration(p.rng.IntN(2)) * time.Second)}
	open := slices.Sorted(maps.Keys(p.awaited()))
	wanted := []string{"signal go", "signal stop", "resume", "submit r:a#1.1", "status"}[p.rng.IntN(5)]
	if len(open) > 0 && p.rng.IntN(4) > 0 {
		wanted = open[p.rng.IntN(len(open))]
	}
	return func() {
		p.call(wanted, i, func(r *graph.Runner) error {
			var err error
			var id, node string
			switch {
			case wanted == "status":
				_, err = r.Status(ctx, graph.StatusRequest{ExecutionID: "r"})
			case wanted == "resume":
				_, err = r.Resume(ctx, graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}, Caller: caller})
			case wanted == "signal go" || wanted == "signal stop":
				_, err = r.Signal(ctx, graph.SignalRequest{ExecutionID: "r", Name: wanted[len("signal "):], Caller: caller})
			default:
				key := wanted[len("submit "):]
				run, serr := r.Status(ctx, graph.StatusRequest{ExecutionID: "r"})
				if serr != nil {
					return serr
				}
				req := graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, IdempotencyKey: key, Caller: caller}
				for _, w := range run.Pending {
					if w.IdempotencyKey == key {
						id, node = w.ExecutionID, w.NodeID
						req.NodeID, req.Span, req.CorrelationID, req.Result = node, w.Span, w.CorrelationID, object{node: w.Visit}
					}
				}
				if req.NodeID == "a" && key == "r:a#1.1" {
					req.OK, req.Result, req.Error = false, nil, "not at first"
				}
				if id == "" && key != "r:a#1.1" {
					return nil // it is over
				}
				_, err = r.SubmitActivity(ctx, req)
			}
			return err
		})
	}
}

// call makes a call and looks into its refusal.
func (p *pair) call(what string, i int, do func(*graph.Runner) error) {
	before := p.awaited()
	err := do(p.runners[i])
	after := p.awaited()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	p.log = append(p.log, fmt.Sprintf("%v process %d: %s: %v", time.Now().Format("05.000"), i, what, err))
	if err == nil {
		return
	}
	p.refused++
	e, ok := problem.As(err)
	switch {
	case errors.Is(err, historytest.ErrInjected):
	case !ok, e.Code == problem.Internal, e.Code == problem.HistoryConflict, e.Code == problem.LeaseHeld:
		p.t.Errorf("seed %d: %s: a caller sees %v", p.seed, what, err)
	case before[what] && after[what]:
		p.log = append(p.log, fmt.Sprint("awaited before and after: ", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after))))
		p.t.Errorf("seed %d: %s is awaited, and refused: %v\n%v", p.seed, what, err, p.log)
	}
}

// die ends a process without a word, and begins another one.
func (p *pair) die(i int) {
	p.mu.Lock()
	p.deaths++
	p.log = append(p.log, fmt.Sprintf("%v process %d dies", time.Now().Format("05.000"), i))
	p.mu.Unlock()
	p.faults[i].Set(historytest.Fault{At: 1, Reads: true, Dead: true})
	_, _ = p.faults[i].Execution(context.Background(), "r") // strikes
	closeRunner(p.t, p.runners[i])
	p.open(i)
}

// check looks at the end of everything.
func (p *pair) check() {
	for id, e := range p.executions() {
		rs := records(p.t, p.store, id)
		once, ends, due := map[string]bool{}, 0, map[string]time.Time{}
		for i, r := range rs {
			if r.Seq != int64(i+1) {
				p.fatalf("%s: record %d has seq %d", id, i+1, r.Seq)
			}
			switch r.Name {
			case history.ActivityCompleted, history.SignalReceived, history.InterruptResumed, history.TimerFired, history.SubworkflowCompleted, history.ActivityRequested, history.ActivityFailed:
				fact := fmt.Sprint(r.Name, r.Payload.NodeID, r.Payload.Visit, r.Payload.Attempt)
				if once[fact] {
					p.fatalf("%s: %s is recorded twice", id, fact)
				}
				once[fact] = true
			}
			if r.Name.Terminal() {
				ends++
			}
			switch timer := fmt.Sprint(r.Payload.NodeID, r.Payload.Visit); {
			case r.Name == history.TimerStarted:
				due[timer] = r.Payload.DueAt
			case r.Name == history.TimerFired && p.deaths == 0 && !p.faulty && r.CreatedAt.Sub(due[timer]) > 10*time.Millisecond:
				p.fatalf("%s: a wake-up was lost: the timer of %s fired %v late", id, timer, r.CreatedAt.Sub(due[timer]))
			}
		}
		if e.Phase == history.PhaseFailed {
			p.fatalf("%s has failed", id)
		}
		if ends != 1 || !e.Phase.Terminal() {
			p.fatalf("%s has %d ends and is %s", id, ends, e.Phase)
		}
	}
	for key, n := range p.performed {
		if n > 1+p.deaths+p.failed {
			p.fatalf("%s was performed %d times with %d deaths and %d failed calls", key, n, p.deaths, p.failed)
		}
	}
}
