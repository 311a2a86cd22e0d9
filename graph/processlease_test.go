package graph_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// renewals counts the renewals of leases.
type renewals struct {
	history.Store
	n atomic.Int64
}

func (s *renewals) Renew(ctx context.Context, process string, ttl time.Duration) error {
	s.n.Add(1)
	return s.Store.Renew(ctx, process, ttl)
}

// TestLiveRunsAreNotStolen has a process perform very many attempts at once beside another one that has nothing to do: none is
// performed again, and the process renews its lease with one commit whatever it drives. The short form has a tenth of the attempts.
func TestLiveRunsAreNotStolen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		attempts  int
		ttl, work time.Duration
	}{
		{8_000, 3 * time.Second, 2 * time.Minute},
		{20_000, 30 * time.Second, 5 * time.Minute},
	} {
		t.Run(fmt.Sprint(c.attempts), func(t *testing.T) {
			t.Parallel()
			c.attempts /= soak.Size(10, 40, 1)
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				performed := map[string]int{}
				work := activities.ExecutorFunc(func(ctx context.Context, req activities.Request) (activities.Result, error) {
					mu.Lock()
					performed[req.IdempotencyKey]++
					mu.Unlock()
					select {
					case <-time.After(c.work):
						return activities.Result{Output: object{}}, nil
					case <-ctx.Done():
						return activities.Result{}, context.Cause(ctx)
					}
				})
				store := &renewals{Store: historymem.New()}
				busy := newRunner(t, store, graph.Options{Activities: work, LeaseTTL: c.ttl, Work: graph.WorkAll, Capacity: -1})
				newRunner(t, store.Store, graph.Options{Activities: work, LeaseTTL: c.ttl, Work: graph.WorkAll})
				d := linear(t, "one", "a")
				for i := range c.attempts {
					if _, err := busy.Start(t.Context(), graph.StartRequest{ExecutionID: fmt.Sprint("r", i), Definition: d, Wait: waitFor(0)}); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(c.work + time.Second)
				synctest.Wait()
				if len(performed) != c.attempts {
					t.Errorf("%d attempts were performed", len(performed))
				}
				for key, n := range performed {
					if n != 1 {
						t.Fatalf("%s was performed %d times", key, n)
					}
				}
				if n, most := store.n.Load(), int64(c.work/time.Second)+2; n > most { // and those at the start
					t.Errorf("the lease was renewed %d times in %s", n, c.work)
				}
				wantStatus(t, status(t, busy, "r0"), machine.Completed)
			})
		})
	}
}

// TestTakeoverAfterACleanClose has a process go on with what another one left when it closed.
func TestTakeoverAfterACleanClose(t *testing.T) {
	t.Parallel()
	for offset := range 10 {
		synctest.Test(t, func(t *testing.T) {
			store := historymem.New()
			first := newRunner(t, store, graph.Options{Activities: &script{answers: answers{"a": hang}}})
			if _, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "lin", "a"), Wait: waitFor(0)}); err != nil {
				t.Fatal(err)
			}
			var begun time.Time
			newRunner(t, store, graph.Options{Work: graph.WorkAll, Activities: &script{answers: answers{"a": func(context.Context, activities.Request) (any, error) {
				begun = time.Now()
				return nil, nil
			}}}})
			time.Sleep(time.Minute + time.Duration(offset)*130*time.Millisecond)
			closed := time.Now()
			closeRunner(t, first)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if took := begun.Sub(closed); begun.IsZero() || took > time.Second {
				t.Errorf("offset %d: taken over after %s", offset, took)
			}
		})
	}
}

// TestRunnersOfOneLabelAreTwoProcesses gives two Runners the same Options.Owner: neither performs what the other one does.
func TestRunnersOfOneLabelAreTwoProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		exec := &script{answers: answers{"a": after(10*time.Minute, nil)}}
		o := graph.Options{Activities: exec, Owner: "worker", Work: graph.WorkAll}
		r := newRunner(t, store, o)
		newRunner(t, store, o)
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "lin", "a"), Wait: waitFor(0)}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, settled(t, r, "r"), machine.Completed)
		if exec.count() != 1 {
			t.Errorf("performed %v", exec.keys())
		}
	})
}

// TestAProcessThatCannotRenewStopsInTime ends its attempts before anybody else can claim its runs, and goes on under another name
// once the store works again.
func TestAProcessThatCannotRenewStopsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &noLease{Store: historymem.New()}
		begun := time.Now()
		var stopped time.Time
		var cause error
		tries := 0
		r := newRunner(t, store, graph.Options{Work: graph.WorkAll, Activities: activities.ExecutorFunc(func(ctx context.Context, _ activities.Request) (activities.Result, error) {
			if tries++; tries > 1 {
				return activities.Result{}, nil
			}
			<-ctx.Done()
			stopped, cause = time.Now(), context.Cause(ctx)
			return activities.Result{}, cause
		})})
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "lin", "a"), Wait: waitFor(0)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if held := stopped.Sub(begun); stopped.IsZero() || held > 28*time.Second || !errors.Is(cause, work.ErrLeaseLost) {
			t.Fatalf("stopped after %s: %v", held, cause)
		}
		store.thaw()
		time.Sleep(15 * time.Second)
		wantStatus(t, status(t, r, "r"), machine.Completed)
		if tries != 2 {
			t.Errorf("performed %d times", tries)
		}
	})
}
