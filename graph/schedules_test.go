package graph_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// TestRandomSchedules lets processes of all kinds share runs: they differ in Work, Capacity, Queues, Limits and handlers. They come and drain at
// random while calls of all kinds arrive. In a third of the plays processes also die, in another third single calls of the store fail, before they
// take effect or after. Every run ends, no outcome is recorded twice, no process exceeds its capacity, and nothing is left in the store. Without
// deaths and failed calls no attempt is performed twice.
func TestRandomSchedules(t *testing.T) {
	t.Parallel()
	plays{usual: 24, race: 9, soak: 3_000}.each(t, func(t *testing.T, seed uint64) {
		c := newCrew(t, seed)
		defer func() {
			if t.Failed() {
				c.tell()
			}
		}()
		c.play()
		c.check()
	})
}

// crew is the processes of a play, and what they share.
type crew struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand
	store history.Store
	// dies: processes end without a drain. fails: single calls of the store fail.
	dies, fails bool
	child, doc  *definition.Document
	front       *graph.Runner
	hands       []*hand
	opened      int
	runs        []string
	failed      int

	mu        sync.Mutex
	takes     *rand.Rand    // how long attempts take
	lasts     time.Duration // unless 0, how long each attempt takes
	active    map[string]int
	performed map[string]int
	cancelled map[string]bool
	log       []string
}

// hand is a process with the executor of its steps.
type hand struct {
	*crew
	name     string
	handlers []string
	// vague: a missing handler is reported only when it is called.
	vague    bool
	capacity int
	limit    int
	now      int
	r        *graph.Runner
	faults   *historytest.FaultStore
}

func (h *hand) Capabilities(n activities.Node) activities.Capabilities {
	name, _ := n.Config["handler"].(string)
	can := performs(n.Type == "step" && (h.vague || slices.Contains(h.handlers, name)))
	if !h.vague && len(h.handlers)%2 == 0 {
		can.Targets = func() []string { return h.handlers }
	}
	return can
}

func (h *hand) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	name, _ := req.Config["handler"].(string)
	if !slices.Contains(h.handlers, name) {
		if !h.vague {
			h.t.Errorf("%s was handed to %s", req.IdempotencyKey, h.name)
		}
		return activities.Result{}, activities.Fail(problem.HandlerNotFound, "no handler here")
	}
	h.mu.Lock()
	h.now++
	if most := max(h.capacity, h.limit); most > 0 && h.now > most {
		h.t.Errorf("%s performs %d attempts at once", h.name, h.now)
	}
	h.performed[req.IdempotencyKey]++
	if h.active[req.IdempotencyKey]++; h.active[req.IdempotencyKey] > 1 && !h.fails {
		h.t.Errorf("%s is performed twice at once", req.IdempotencyKey)
	}
	takes := time.Duration(h.takes.IntN(3)) * time.Duration(h.takes.IntN(2_000)) * time.Millisecond
	if h.lasts > 0 {
		takes = h.lasts
	}
	h.mu.Unlock()
	h.note("%s performs %s for %s", h.name, req.IdempotencyKey, takes)
	defer func() {
		h.mu.Lock()
		h.now--
		h.active[req.IdempotencyKey]--
		h.mu.Unlock()
	}()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			h.note("%s stops %s: %v", h.name, req.IdempotencyKey, context.Cause(ctx))
			return activities.Result{}, context.Cause(ctx)
		}
	}
	if req.NodeID == "b" && req.Attempt < 3 {
		return activities.Result{}, errors.New("not yet")
	}
	return activities.Result{Output: object{req.NodeID: req.Attempt}}, nil
}

func newCrew(t *testing.T, seed uint64) *crew {
	c := &crew{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 11)), takes: rand.New(rand.NewPCG(seed, 12)), store: historymem.New(),
		dies: seed%3 == 1, fails: seed%3 == 2, active: map[string]int{}, performed: map[string]int{}, cancelled: map[string]bool{},
	}
	join := []string{"all", "any"}[c.rng.IntN(2)]
	c.child = workflow(t, "child", []string{startNode(), step("c", "two"), step("k", "one"), endNode()}, "s c", "c k", "k e")
	c.doc = workflowWith(t, "shared", `"x-workflows-engine":{"uses":["map"]}`, []string{
		startNode(), step("a", "one"), fork("f", join, "b", "v", "w", "h"), step("b", "two", `"retry":{"max_attempts":5,"initial_interval":"3s"}`),
		subworkflow("v", "urn:child"), timerWait("w", "4s"), step("x", "three"), step("h", "three"),
		step("m", "one", fmt.Sprintf(`"map":{"items":"[1,2,3,4]","concurrency":%d,"collect":"ms"}`, 1+c.rng.IntN(3))), signalWait("g", "go"), step("z", "two"), endNode(),
	}, "s a", "a f", "f m", "b m", "v m", "w x", "x m", "h m", "m g", "g z", "z e")
	c.front = newRunner(t, c.store, graph.Options{Work: graph.WorkNone, Owner: "front"})
	register(t, c.front, "urn:child", c.child)
	return c
}

func (c *crew) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

// tell logs the events of a play.
func (c *crew) tell() {
	c.t.Logf("seed %d\n%s", c.seed, strings.Join(c.log, "\n"))
	for _, id := range c.all() {
		e, _ := c.store.Execution(context.Background(), id)
		if !e.Phase.Terminal() {
			c.t.Log(id, e.Phase, names(records(c.t, c.store, id), ""))
		}
	}
}

// all lists the runs.
func (c *crew) all() (ids []string) {
	page, err := c.store.List(context.Background(), history.ListQuery{Limit: 100})
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range page.Executions {
		ids = append(ids, page.Executions[i].ID)
	}
	return ids
}

func (c *crew) open(o graph.Options, handlers []string, vague bool) *hand {
	c.opened++
	h := &hand{crew: c, handlers: handlers, vague: vague, capacity: max(o.Capacity, 0), faults: historytest.NewFaultStore(c.store)}
	for _, l := range o.Limits {
		h.limit = l.Concurrent
		h.capacity = 0
	}
	h.name = fmt.Sprint("P", c.opened, handlers, " ", o.Work, " ", o.Capacity, " ", o.Queues, " limit ", h.limit, " vague ", vague)
	o.Activities, o.Owner, o.Drain = h, fmt.Sprint("P", c.opened), time.Minute
	if c.dies && c.rng.IntN(2) == 0 {
		o.Drain = 0
	}
	h.r = newRunner(c.t, h.faults, graph.InStretches(o, c.opened%3*500))
	if o.Work != graph.WorkOwn || c.rng.IntN(2) == 0 {
		register(c.t, h.r, "urn:child", c.child)
	}
	c.note("%s comes", h.name)
	c.hands = append(c.hands, h)
	return h
}

// any opens a process of a random kind.
func (c *crew) any() {
	o := graph.Options{Work: []graph.Work{graph.WorkAll, graph.WorkAll, graph.WorkAll, graph.WorkOwn, graph.WorkNone}[c.rng.IntN(5)], Capacity: c.rng.IntN(6)}
	if o.Capacity == 0 {
		o.Capacity = -1
	}
	if o.Work != graph.WorkNone && c.rng.IntN(4) == 0 {
		o.Limits = []graph.Limit{{Class: "step", Concurrent: 1 + c.rng.IntN(2)}}
	}
	if o.Work == graph.WorkAll && c.rng.IntN(4) == 0 {
		o.Queues = []string{"fast"}
	}
	var handlers []string
	for _, name := range []string{"one", "two", "three"} {
		if c.rng.IntN(3) > 0 {
			handlers = append(handlers, name)
		}
	}
	c.open(o, handlers, c.rng.IntN(4) == 0)
}

func (c *crew) leave(i int) {
	h := c.hands[i]
	c.hands = slices.Delete(c.hands, i, i+1)
	h.faults.Revive()
	if c.dies && c.rng.IntN(2) == 0 {
		c.note("%s dies", h.name)
		kill(c.t, h.r, h.faults)
		return
	}
	c.note("%s leaves", h.name)
	closeRunner(c.t, h.r)
	c.note("%s has left", h.name)
}

func (c *crew) start() {
	id := fmt.Sprint("r", len(c.runs))
	req := graph.StartRequest{ExecutionID: id, Definition: c.doc, Priority: c.rng.IntN(3) * 10, Wait: waitFor(0)}
	if c.rng.IntN(3) == 0 {
		req.Queue = "fast"
	}
	if _, err := c.front.Start(c.t.Context(), req); err != nil {
		c.t.Errorf("start: %v", err)
	}
	c.runs = append(c.runs, id)
}

func (c *crew) signal(r *graph.Runner, id string) {
	_, err := r.Signal(c.t.Context(), graph.SignalRequest{ExecutionID: id, Name: "go", Caller: graph.Caller{Wait: waitFor(0)}})
	if err == nil {
		c.note("%s is signalled", id)
	}
}

// act does something at random.
func (c *crew) act() {
	rng := c.rng
	switch k := rng.IntN(12); {
	case k < 3:
		c.start()
	case k < 5 && len(c.hands) < 5:
		c.any()
	case k < 6 && len(c.hands) > 0:
		c.leave(rng.IntN(len(c.hands)))
	case k < 7 && c.fails && len(c.hands) > 0:
		h := c.hands[rng.IntN(len(c.hands))]
		f := historytest.Fault{At: 1 + rng.IntN(8), Reads: rng.IntN(2) == 0, AfterCommit: rng.IntN(2) == 0}
		h.faults.Set(f)
		c.failed++
		c.note("%s: %+v", h.name, f)
	case k < 8 && len(c.runs) > 0 && rng.IntN(3) == 0:
		id := c.runs[rng.IntN(len(c.runs))]
		if _, err := c.front.Cancel(c.t.Context(), graph.CancelRequest{ExecutionID: id, Reason: "enough"}); err == nil {
			c.cancelled[id] = true
			c.note("%s is cancelled", id)
		}
	case len(c.runs) > 0:
		r := c.front
		if len(c.hands) > 0 && rng.IntN(2) == 0 {
			r = c.hands[rng.IntN(len(c.hands))].r
		}
		id := c.runs[rng.IntN(len(c.runs))]
		if rng.IntN(2) == 0 {
			c.signal(r, id)
		} else if _, err := r.Status(c.t.Context(), graph.StatusRequest{ExecutionID: id}); err != nil && !c.fails {
			c.t.Errorf("status: %v", err)
		}
	}
}

// ended reports whether all runs have ended.
func (c *crew) ended() bool {
	for _, id := range c.all() {
		if e, err := c.store.Execution(c.t.Context(), id); err != nil || !e.Phase.Terminal() {
			return false
		}
	}
	return true
}

func (c *crew) play() {
	for range 2 + c.rng.IntN(3) {
		c.any()
	}
	for range 60 {
		c.act()
		if c.rng.IntN(3) == 0 {
			synctest.Wait()
		} else {
			time.Sleep(time.Duration(c.rng.IntN(1_500)) * time.Millisecond)
		}
	}
	for len(c.hands) > 0 && c.rng.IntN(3) > 0 {
		c.leave(0)
	}
	for _, h := range c.hands {
		h.faults.Revive()
	}
	c.note("the end begins")
	c.open(graph.Options{Work: graph.WorkAll, Capacity: 1}, []string{"one", "three"}, false)
	c.open(graph.Options{Work: graph.WorkAll, Capacity: 2}, []string{"two", "three"}, false)
	for i := range 300 {
		if c.ended() {
			c.note("all have ended after %d s", 5*i)
			break
		}
		if i%3 == 2 {
			for _, id := range c.runs {
				c.signal(c.front, id)
			}
		}
		time.Sleep(5 * time.Second)
	}
	time.Sleep(20 * time.Second) // for the rest of cancels
}

func (c *crew) check() {
	t, ctx := c.t, c.t.Context()
	for _, id := range c.all() {
		e, err := c.store.Execution(ctx, id)
		root, _, _ := strings.Cut(id, history.ChildMark)
		switch {
		case err != nil || !e.Phase.Terminal():
			t.Errorf("%s in the end %s, %v", id, e.Phase, err)
		case id == root && e.Phase != history.PhaseCompleted && !c.cancelled[root]:
			t.Errorf("%s in the end %s: %s", id, e.Phase, e.LastError)
		}
		if owner, err := c.store.Owner(ctx, id); err != nil || owner.Process != "" {
			t.Errorf("the owner of %s is %+v, %v", id, owner, err)
		}
		seen := map[string]bool{}
		for _, r := range records(t, c.store, id) {
			switch r.Name {
			case history.ActivityCompleted, history.ActivityFailed, history.ActivityRequested, history.SignalReceived, history.TimerFired, history.SubworkflowCompleted, history.ExecutionCompleted:
				fact := fmt.Sprint(r.Name, " ", r.Payload.NodeID, "#", r.Payload.Visit, ".", r.Payload.Attempt, " ", r.Payload.Span)
				if r.Payload.NodeID != "m" && seen[fact] {
					t.Errorf("%s: %s is recorded twice", id, fact)
				}
				seen[fact] = true
			}
		}
	}
	if !c.dies {
		for key, n := range c.performed {
			if n > 1+c.failed {
				t.Errorf("%s was performed %d times with %d failed calls", key, n, c.failed)
			}
		}
	}
	q, _ := history.As[history.Queue](c.store)
	lanes, err := q.Lanes(ctx)
	orphans, err2 := c.store.Unowned(ctx, 0)
	timers, err3 := c.store.DueTimers(ctx, time.Now().Add(1000*time.Hour), 0)
	if len(lanes)+len(orphans)+len(timers) > 0 || errors.Join(err, err2, err3) != nil {
		t.Errorf("left over: %+v %v %v, %v %v %v", lanes, orphans, timers, err, err2, err3)
	}
}

// TestCallsOfTheQueueFail has each write of a worker fail in turn, before and after it takes effect, for once or for good. The front process starts
// more runs than the worker has room for, and another worker has a handler that the first one lacks. Both runs complete, with each outcome recorded
// once; without a death the calls after the failed one are enough, although no lease ends.
func TestCallsOfTheQueueFail(t *testing.T) {
	t.Parallel()
	play := func(t *testing.T, f historytest.Fault) (calls []string) {
		synctest.Test(t, func(t *testing.T) {
			c := newCrew(t, 2)
			c.lasts = time.Second
			c.doc = workflow(t, "few", []string{startNode(), step("a", "one"), step("x", "three"), step("z", "two"), endNode()}, "s a", "a x", "x z", "z e")
			first := c.open(graph.Options{Work: graph.WorkAll, Capacity: 1}, []string{"one", "two", "three"}, false)
			c.open(graph.Options{Work: graph.WorkAll, Capacity: 2}, []string{"one", "three"}, false)
			time.Sleep(15 * time.Second)
			first.faults.Set(f)
			for i := range 6 {
				if i%2 == 0 {
					c.start()
					continue
				}
				req := graph.StartRequest{ExecutionID: fmt.Sprint("first", i), Definition: c.doc, Wait: waitFor(0)}
				_, _ = first.r.Start(t.Context(), req) // it may fail, and begin the run all the same
			}
			if f.Dead {
				time.Sleep(10 * time.Second)
				calls = first.faults.Calls()
				first.faults.Revive()
				kill(t, first.r, first.faults)
				c.open(graph.Options{Work: graph.WorkAll, Capacity: 1}, []string{"one", "two", "three"}, false)
			}
			begun := time.Now()
			for range 120 {
				if time.Sleep(time.Second); c.ended() {
					break
				}
			}
			if calls == nil {
				calls = first.faults.Calls()
			}
			c.failed = 1
			c.dies = f.Dead
			c.check()
			if took := time.Since(begun); took > 50*time.Second {
				t.Errorf("%+v, %v: the runs ended after %s", f, calls[min(len(calls), f.At)-1], took)
			}
			if t.Failed() {
				c.tell()
			}
		})
		return calls
	}
	writes := map[string]bool{"Append": true, "ClaimReady": true, "Offer": true, "Claim": true, "Disown": true, "Renew": true, "Execution": true, "Owner": true, "Owned": true}
	seen := map[string]int{}
	var calls []string
	for range 20 { // not every order of the processes has a run given away
		if calls = play(t, historytest.Fault{Reads: true}); slices.Contains(calls, "Offer") && slices.Contains(calls, "ClaimReady") {
			break
		}
	}
	for i, name := range calls {
		if seen[name]++; !writes[name] || seen[name] > 25 || name == "Renew" && seen[name] > 2 {
			continue
		}
		for _, f := range []historytest.Fault{{}, {AfterCommit: true}, {Dead: true}, {Dead: true, AfterCommit: true}} {
			f.At, f.Reads = i+1, true
			if play(t, f); t.Failed() {
				return
			}
		}
	}
	t.Log(seen)
	if seen["ClaimReady"] == 0 || seen["Offer"] == 0 {
		t.Errorf("no call of the queue was made: %v", seen)
	}
}

// slowClaims is a store whose claims take effect at once, and are answered later.
type slowClaims struct {
	commits
	takes, disowned atomic.Int64
}

func (s *slowClaims) ClaimReady(ctx context.Context, c history.ReadyClaim) ([]string, error) {
	ids, err := s.commits.ClaimReady(ctx, c)
	if len(ids) > 0 {
		time.Sleep(time.Duration(s.takes.Load()))
	}
	return ids, err
}

func (s *slowClaims) Disown(ctx context.Context, process string, ids ...string) error {
	s.disowned.Add(1)
	return s.commits.Disown(ctx, process, ids...)
}

// TestClaimsAreAnsweredLateOrNever has a worker that drives no run claim one. If the claim fails although it took effect, the worker continues the
// run. It does not give back a run whose claim is under way.
func TestClaimsAreAnsweredLateOrNever(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			below := historymem.New()
			slow := &slowClaims{commits: commits{Store: below}}
			store := historytest.NewFaultStore(history.Wrap(slow, below))
			work := &gauge{lasts: time.Second}
			worker := newRunner(t, store, graph.Options{Activities: work, Work: graph.WorkAll, Capacity: 1})
			front := newRunner(t, below, graph.Options{Work: graph.WorkNone})
			time.Sleep(15500 * time.Millisecond) // between two looks at the shared limits
			if late {
				slow.takes.Store(int64(9 * time.Second))
			} else {
				store.Set(historytest.Fault{At: 1, Reads: true, AfterCommit: true})
			}
			startMany(t, front, 1, tool("n0"))
			if synctest.Wait(); !late && !slices.Equal(store.Calls(), []string{"ClaimReady"}) {
				t.Errorf("the calls are %q", store.Calls())
			}
			begun := time.Now()
			if late { // it leaves no room
				d := linear(t, "long", "n0", "n1", "n2", "n3", "n4", "n5", "n6")
				if _, err := worker.Start(t.Context(), graph.StartRequest{ExecutionID: "long", Definition: d, Wait: waitFor(0)}); err != nil {
					t.Fatal(err)
				}
			}
			wantCompleted(t, front, 1)
			if took := time.Since(begun); took > 12*time.Second || late && slow.disowned.Load() > 0 {
				t.Errorf("late %t: the run ended after %s, and was disowned %d times", late, took, slow.disowned.Load())
			}
			work.total(t)
		})
	}
}
