package graph_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestProcessesComeAndGo has processes of all abilities come, go and die at random while a run with branches, retries, timers and
// subworkflows is under way, and asks, signals and recovers through any of them. Nothing is performed where its handler is
// missing, nor in two processes at once, nothing is recorded twice, and once there are processes that have everything between
// them the run completes, with no timer or run left over. In a third of the plays attempts have short timeouts, and one process
// that has everything is there all the time: none is timed out for want of somebody. In another third the process where the run
// began lacks something and stays, while others write to the run.
func TestProcessesComeAndGo(t *testing.T) {
	t.Parallel()
	plays{usual: 12, race: 6, soak: 3_000}.each(t, func(t *testing.T, seed uint64) {
		p := &troupe{
			t: t, rng: rand.New(rand.NewPCG(seed, 7)), takes: rand.New(rand.NewPCG(seed, 8)),
			store: historymem.New(), active: map[string]int{}, timed: seed%3 == 1, elsewhere: seed%3 == 2,
		}
		defer func() {
			if t.Failed() {
				p.tell(seed)
			}
		}()
		p.play()
		p.check()
	})
}

// troupe is a run's processes, and what they share.
type troupe struct {
	t     *testing.T
	rng   *rand.Rand
	store history.Store
	// child and grandchild are the workflows of the subworkflows.
	child, grandchild *definition.Document
	// timed says that some attempts have timeouts, elsewhere that the run begins in a process that stays.
	timed, elsewhere bool
	procs            []*player
	opened           int

	mu     sync.Mutex
	takes  *rand.Rand     // how long attempts take
	active map[string]int // by idempotency key: in how many processes it is performed
	log    []string
}

// player is one process: an executor with its handlers.
type player struct {
	*troupe
	name     string
	handlers []string
	r        *graph.Runner
	faults   *historytest.FaultStore
}

func (m *player) Capabilities(n activities.Node) activities.Capabilities {
	name, _ := n.Config["handler"].(string)
	return performs(slices.Contains(m.handlers, name))
}

func (m *player) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	if m.Capabilities(req.Node()).Missing != activities.MissingNothing {
		m.t.Errorf("%s was handed to %s", req.IdempotencyKey, m.name)
		return activities.Result{}, activities.Fail(problem.ExecutorNotConfigured, "no handler here")
	}
	m.mu.Lock()
	if m.active[req.IdempotencyKey]++; m.active[req.IdempotencyKey] > 1 {
		m.t.Errorf("%s is performed twice at once", req.IdempotencyKey)
	}
	takes := time.Duration(m.takes.IntN(4)) * time.Duration(m.takes.IntN(40_000)) * time.Millisecond
	m.mu.Unlock()
	if m.timed {
		takes *= 5
		if !req.Deadline.IsZero() {
			takes = 0
		}
	}
	m.note("%s performs %s for %s", m.name, req.IdempotencyKey, takes)
	defer func() {
		m.mu.Lock()
		m.active[req.IdempotencyKey]--
		m.mu.Unlock()
	}()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return activities.Result{}, context.Cause(ctx)
	}
	if (req.NodeID == "b" || req.NodeID == "d") && req.Attempt < 3 {
		return activities.Result{}, errors.New("not yet")
	}
	return activities.Result{Output: object{req.NodeID: req.Attempt}}, nil
}

func (p *troupe) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// tell says what happened.
func (p *troupe) tell(seed uint64) {
	p.t.Logf("seed %d", seed)
	for _, line := range p.log {
		p.t.Log(line)
	}
	for _, id := range []string{"r", "r:sub:v", "r:sub:v:sub:u"} {
		rs, _ := p.store.Read(context.Background(), id, 1, 0)
		for _, rec := range rs {
			p.t.Log(id, rec.CreatedAt.Format("15:04:05.000"), rec.Name, rec.Payload.NodeID, rec.Payload.Attempt, rec.Payload.Error)
		}
	}
}

func (p *troupe) open(handlers []string, knows, background bool) *player {
	p.opened++
	m := &player{troupe: p, name: fmt.Sprint("P", p.opened, handlers, " knows=", knows), handlers: handlers, faults: historytest.NewFaultStore(p.store)}
	m.r = newRunner(p.t, m.faults, graph.InStretches(graph.Options{Activities: m, Work: workAll(background), Owner: m.name}, p.opened%3*500))
	if knows {
		register(p.t, m.r, "urn:child", p.child)
		register(p.t, m.r, "urn:grandchild", p.grandchild)
	}
	p.note("%s comes", m.name)
	return m
}

func (p *troupe) leave(m *player) {
	if p.rng.IntN(2) == 0 {
		p.note("%s dies", m.name)
		kill(p.t, m.r, m.faults)
	} else {
		p.note("%s goes", m.name)
		closeRunner(p.t, m.r)
	}
}

// some gives a random part of all handlers.
func (p *troupe) some() (handlers []string) {
	for _, h := range []string{"one", "two", "three"} {
		if p.rng.IntN(2) == 0 {
			handlers = append(handlers, h)
		}
	}
	return handlers
}

// workflow makes the run's workflow, and those of its subworkflows.
func (p *troupe) workflow() *definition.Document {
	node := func(id, handler string, members ...string) string {
		if p.timed && p.rng.IntN(2) == 0 {
			members = append(members, `"timeout":"2s"`)
		}
		return step(id, handler, members...)
	}
	const again = `"retry":{"max_attempts":5,"initial_interval":"70s"}`
	join := []string{"all", "any"}[p.rng.IntN(2)]
	rest := []string{timerWait("w1", "5m"), signalWait("g", "go"), node("x", "three"), node("h", "three"), node("y", "one"), node("z", "two"), endNode()}
	if p.elsewhere { // a subworkflow that ends while others drive its parent
		p.child = workflow(p.t, "child", []string{startNode(), timerWait("c", "3m"), subworkflow("u", "urn:grandchild"), endNode()}, "s c", "c u", "u e")
		p.grandchild = workflow(p.t, "grandchild", []string{startNode(), timerWait("k", "3m"), endNode()}, "s k", "k e")
		return workflow(p.t, "w", append([]string{
			startNode(), fork("f0", "all", "v", "g0"), subworkflow("v", "urn:child"), signalWait("g0", "first"), node("a", "one"),
			fork("f", join, "b", "w1", "h"), node("b", "two", again),
		}, rest...), "s f0", "f0 y", "v y", "g0 a", "a f", "f y", "b y", "w1 g", "g x", "x y", "h y", "y z", "z e")
	}
	p.child = workflow(p.t, "child", []string{startNode(), node("c", "two"), subworkflow("u", "urn:grandchild"), node("d", "three", again), endNode()},
		"s c", "c u", "u d", "d e")
	p.grandchild = workflow(p.t, "grandchild", []string{startNode(), node("k", "one"), endNode()}, "s k", "k e")
	return workflow(p.t, "w", append([]string{
		startNode(), node("a", "one"), fork("f", join, "b", "v", "w1", "h"), node("b", "two", again), subworkflow("v", "urn:child"),
	}, rest...), "s a", "a f", "f y", "b y", "v y", "w1 g", "g x", "x y", "h y", "y z", "z e")
}

func (p *troupe) signal(m *player, name string) error {
	_, err := m.r.Signal(p.t.Context(), graph.SignalRequest{ExecutionID: "r", Name: name, Caller: graph.Caller{Wait: waitFor(0)}})
	return err
}

func (p *troupe) play() {
	t, rng := p.t, p.rng
	d := p.workflow()
	whole := p.open([]string{"one", "two", "three"}, true, true)
	if p.elsewhere {
		stays := p.open(p.some(), true, rng.IntN(2) == 0)
		if rng.IntN(2) == 0 {
			graph.KeepIdle(stays.r, 0)
		}
		atOnce(t, stays.r, "r", d)
		time.Sleep(time.Duration(rng.IntN(60)) * time.Second)
		if err := p.signal(whole, "first"); err != nil {
			t.Fatal(err)
		}
	} else {
		atOnce(t, whole.r, "r", d)
	}
	time.Sleep(time.Duration(rng.IntN(3)) * time.Duration(rng.IntN(60_000)) * time.Millisecond)
	p.leave(whole)
	if p.timed {
		p.open([]string{"one", "two", "three"}, true, true)
	}
	signalled := false
	for range 25 {
		signalled = p.act() || signalled
		if rng.IntN(3) == 0 {
			synctest.Wait()
		} else {
			time.Sleep(time.Duration(rng.IntN(100_000)) * time.Millisecond)
		}
	}
	for len(p.procs) > 0 && rng.IntN(2) == 0 {
		p.leave(p.procs[0])
		p.procs = p.procs[1:]
	}
	p.open([]string{"one", "three"}, false, true)
	last := p.open([]string{"two"}, true, true)
	p.note("the end begins")
	for i := range 120 {
		if e, err := p.store.Execution(t.Context(), "r"); err == nil && e.Phase.Terminal() {
			break
		}
		if !signalled && i%10 == 9 { // under a join "any" nobody may wait for it any more
			signalled = p.signal(last, "go") == nil
		}
		time.Sleep(time.Minute)
	}
	time.Sleep(2 * time.Minute) // for what is still to be told or cancelled
}

// act does something at random, and reports whether that was the signal.
func (p *troupe) act() (signalled bool) {
	t, rng := p.t, p.rng
	k := rng.IntN(10)
	if len(p.procs) == 0 || len(p.procs) < 3 && k < 4 {
		p.procs = append(p.procs, p.open(p.some(), rng.IntN(2) == 0, rng.IntN(4) > 0))
		return false
	}
	i := rng.IntN(len(p.procs))
	m := p.procs[i]
	var err error
	switch {
	case k < 6:
		p.procs = slices.Delete(p.procs, i, i+1)
		p.leave(m)
	case k == 6:
		return p.signal(m, "go") == nil
	case k == 7:
		_, err = m.r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: lookFor(time.Duration(rng.IntN(30)) * time.Second)})
	case k == 8:
		_, err = m.r.Recover(t.Context(), graph.RecoverRequest{})
	default:
		_, err = m.r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", AllowExisting: true, Wait: waitFor(0)})
	}
	p.note("%d through %s: %v", k, m.name, err)
	if err != nil {
		t.Errorf("%d through %s: %v", k, m.name, err)
	}
	return false
}

func (p *troupe) check() {
	t := p.t
	ids := []string{"r"}
	for _, id := range []string{"r", "r:sub:v", "r:sub:v:sub:u"} {
		switch e, err := p.store.Execution(t.Context(), id); {
		case id == "r" && (err != nil || e.Phase != history.PhaseCompleted):
			t.Errorf("in the end %s: %s, %v", e.Phase, e.LastError, err)
		case err == nil && !e.Phase.Terminal():
			t.Errorf("%s in the end %s", id, e.Phase)
		case err == nil && id != "r":
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		seen := map[string]bool{}
		for _, r := range records(t, p.store, id) {
			if r.Kind == history.Command || r.Name == history.StateUpdated || r.Name == history.ParallelBranchCancelled || r.Name == history.CheckpointWritten {
				continue
			}
			fact := fmt.Sprint(r.Name, " ", r.Payload.NodeID, "#", r.Payload.Visit, ".", r.Payload.Attempt)
			if seen[fact] {
				t.Errorf("%s: %s is recorded twice", id, fact)
			}
			seen[fact] = true
		}
	}
	orphans, err := p.store.Unowned(t.Context(), 0)
	timers, err2 := p.store.DueTimers(t.Context(), time.Now().Add(1000*time.Hour), 0)
	if len(orphans)+len(timers) > 0 || err != nil || err2 != nil {
		t.Errorf("left over: %v %v, %v %v", orphans, timers, err, err2)
	}
}
