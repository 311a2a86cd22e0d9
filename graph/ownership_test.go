package graph_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
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

// appends is a store whose appends to some runs go another way.
type appends struct {
	history.Store
	append atomic.Pointer[func(history.Batch) error]
	renew  atomic.Pointer[func() error]
}

func (s *appends) Append(ctx context.Context, b history.Batch) error {
	if f := s.append.Load(); f != nil {
		if err := (*f)(b); err != nil {
			return err
		}
	}
	return s.Store.Append(ctx, b)
}

func (s *appends) Renew(ctx context.Context, process string, ttl time.Duration) error {
	if f := s.renew.Load(); f != nil {
		if err := (*f)(); err != nil {
			return err
		}
	}
	return s.Store.Renew(ctx, process, ttl)
}

// performances counts how often an attempt is performed while it is being performed elsewhere.
type performances struct {
	mu    sync.Mutex
	now   map[string]int
	begun map[string]int
	twice int
}

// working is an executor that takes a time for each node, and stops when it is told to.
func (p *performances) working(times map[string]time.Duration) activities.Executor {
	return activities.ExecutorFunc(func(ctx context.Context, req activities.Request) (activities.Result, error) {
		p.note(req.IdempotencyKey, 1)
		defer p.note(req.IdempotencyKey, -1)
		select {
		case <-time.After(times[req.NodeID]):
			return activities.Result{Output: object{}}, nil
		case <-ctx.Done():
			return activities.Result{}, context.Cause(ctx)
		}
	})
}

func (p *performances) note(key string, by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil {
		p.now, p.begun = map[string]int{}, map[string]int{}
	}
	if by > 0 {
		p.begun[key]++
	}
	if p.now[key] += by; p.now[key] > 1 {
		p.twice++
	}
}

func begin(t *testing.T, r *graph.Runner, id, node string) {
	t.Helper()
	if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: linear(t, id, node), Wait: waitFor(0)}); err != nil {
		t.Fatal(err)
	}
}

// TestARunWhoseOutcomeWasNotRecordedGoesOn has the store fail for a while after an attempt has ended, while another run keeps the lease of the
// process alive: the outcome is recorded afterwards. After about 20 s the run is performed again instead.
func TestARunWhoseOutcomeWasNotRecordedGoesOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		away  time.Duration
		again bool
	}{{4 * time.Second, false}, {15 * time.Second, false}, {time.Minute, true}} {
		t.Run(c.away.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &appends{Store: historymem.New()}
				var p performances
				r := newRunner(t, store, graph.Options{Activities: p.working(map[string]time.Duration{"short": 5 * time.Second, "long": time.Hour})})
				begin(t, r, "busy", "long")
				begin(t, r, "x", "short")
				time.Sleep(4 * time.Second)
				fails := func(b history.Batch) error {
					if b.ExecutionID != "x" {
						return nil
					}
					return problem.New(problem.StoreUnavailable, "out of order")
				}
				store.append.Store(&fails)
				time.Sleep(c.away)
				store.append.Store(nil)
				time.Sleep(20 * time.Second)
				if run := status(t, r, "x"); run.Status != machine.Completed {
					t.Errorf("the run is %s", run.Status)
				}
				p.mu.Lock()
				defer p.mu.Unlock()
				if n := p.begun["x:short#1.1"]; (n > 1) != c.again {
					t.Errorf("the attempt was performed %d times", n)
				}
			})
		})
	}
}

// TestAnAppendWhoseAnswerIsLost has a start committed whose caller is told that it failed: the run goes on.
func TestAnAppendWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := historymem.New()
		store := &appends{Store: mem}
		var p performances
		r := newRunner(t, store, graph.Options{Activities: p.working(map[string]time.Duration{"long": time.Hour})})
		begin(t, r, "busy", "long")
		lost := func(b history.Batch) error {
			if err := mem.Append(t.Context(), b); err != nil {
				return err
			}
			return problem.New(problem.StoreUnavailable, "the answer is lost")
		}
		store.append.Store(&lost)
		_, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "x", Definition: linear(t, "x", "short"), Wait: waitFor(0)})
		store.append.Store(nil)
		if err == nil {
			t.Fatal("the start did not fail")
		}
		time.Sleep(10 * time.Second)
		if run := status(t, r, "x"); run.Status != machine.Completed {
			t.Errorf("the run is %s", run.Status)
		}
	})
}

// TestALostLeaseEndsAttemptsOfLockedRuns has one run hang in an append while the lease cannot be renewed: the attempts of all
// runs are stopped in time all the same.
func TestALostLeaseEndsAttemptsOfLockedRuns(t *testing.T) {
	t.Parallel()
	const ttl = 1200 * time.Millisecond // real time: a locked mutex keeps a fake clock from going on
	store := &appends{Store: historymem.New()}
	stopped := make(chan time.Time, 8)
	work := activities.ExecutorFunc(func(ctx context.Context, req activities.Request) (activities.Result, error) {
		if req.NodeID == "short" {
			return activities.Result{Output: object{}}, nil
		}
		<-ctx.Done()
		stopped <- time.Now()
		return activities.Result{}, context.Cause(ctx)
	})
	r := newRunner(t, store, graph.Options{Activities: work, LeaseTTL: ttl})
	for i := range 4 {
		begin(t, r, fmt.Sprint("long", i), "long")
	}
	over := make(chan struct{})
	defer close(over)
	cut := time.Now()
	hang := func() error {
		<-over
		return problem.New(problem.StoreUnavailable, "cut off")
	}
	hangs := func(history.Batch) error { return hang() }
	store.renew.Store(&hang)
	store.append.Store(&hangs)
	for i := range 4 {
		go func() { // each holds a run's lock until the store answers
			_, _ = r.Cancel(context.Background(), graph.CancelRequest{ExecutionID: fmt.Sprint("long", i)})
		}()
	}
	for range 4 {
		select {
		case at := <-stopped:
			if at.Sub(cut) > ttl {
				t.Errorf("stopped %s after the last contact", at.Sub(cut))
			}
		case <-time.After(10 * ttl):
			t.Fatal("an attempt goes on after the lease")
		}
	}
}

// TestAnAppendThatOutlastsTheLease has the first append of a run take longer than the lease: what it requests is performed by one
// process at a time.
func TestAnAppendThatOutlastsTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := historymem.New()
		store := &appends{Store: mem}
		var first sync.Once
		slow := func(history.Batch) error {
			first.Do(func() { time.Sleep(40 * time.Second) })
			return nil
		}
		store.append.Store(&slow)
		var p performances
		work := p.working(map[string]time.Duration{"a": 5 * time.Minute})
		a := newRunner(t, store, graph.Options{Activities: work, Work: graph.WorkAll})
		newRunner(t, mem, graph.Options{Activities: work, Work: graph.WorkAll})
		begin(t, a, "x", "a")
		time.Sleep(15 * time.Minute)
		if run := status(t, a, "x"); run.Status != machine.Completed || p.twice > 0 {
			t.Errorf("the run is %s, begun %d times while it was being performed", run.Status, p.twice)
		}
	})
}

// TestAfterTheHostHasSleptOwnersKeepTheirRuns moves the store's clock as the sleep of a host does: processes do not claim what
// others are about to renew their leases for.
func TestAfterTheHostHasSleptOwnersKeepTheirRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64
		mem := historymem.NewWith(historymem.Options{Now: func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }})
		var p performances
		work := p.working(map[string]time.Duration{"a": 20 * time.Minute})
		runners := []*graph.Runner{
			newRunner(t, mem, graph.Options{Activities: work, Work: graph.WorkAll}),
			newRunner(t, mem, graph.Options{Activities: work, Work: graph.WorkAll}),
		}
		for i := range 20 {
			begin(t, runners[i%2], fmt.Sprint("r", i), "a")
		}
		for range 5 {
			time.Sleep(3*time.Minute + 300*time.Millisecond)
			slept.Add(int64(8 * time.Hour))
		}
		time.Sleep(30 * time.Minute)
		for i := range 20 {
			if run := status(t, runners[0], fmt.Sprint("r", i)); run.Status != machine.Completed {
				t.Errorf("run %d is %s", i, run.Status)
			}
		}
		if p.twice > 0 {
			t.Errorf("%d attempts were begun while they were being performed", p.twice)
		}
	})
}
