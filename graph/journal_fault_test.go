package graph_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// TestJournalOfAFlakyStore records steps while the store fails for a moment, before and after the commit: each is recorded once, and the
// attempt goes on, rests and ends.
func TestJournalOfAFlakyStore(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late=%v", late), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &flaky{Store: historymem.New(), late: late}
				r := newRunner(t, store, graph.Options{Activities: journaled(func(ctx context.Context, j activities.Journal) (activities.End, error) {
					fail := func() {
						store.mu.Lock()
						defer store.mu.Unlock()
						store.fails = 1
					}
					if steps, err := j.Steps(ctx); err != nil || len(steps) > 0 {
						fail()
						return activities.End{Steps: []activities.Step{{Key: "last", Kind: "made"}}, Result: &activities.Result{Output: object{}}}, err
					}
					for i := range 3 {
						fail()
						if err := j.Record(ctx, activities.Step{Key: fmt.Sprint(i), Kind: "made"}); err != nil {
							return activities.End{}, err
						}
					}
					fail()
					return activities.End{Steps: []activities.Step{{Key: "3", Kind: "made"}}, Until: time.Now().Add(time.Minute)}, nil
				})})
				start(t, r, "r", clerical(t), nil)
				if run := settled(t, r, "r"); run.Status != machine.Completed {
					t.Errorf("the run is %s: %s %s", run.Status, run.ErrorCode, run.Error)
				}
				var keys []string
				for _, rec := range records(t, store, "r") {
					if s, n, ok := machine.StepOf(&rec); ok {
						keys = append(keys, fmt.Sprint(n, ":", s.Key))
					}
				}
				if got := fmt.Sprint(keys); got != "[1:0 2:1 3:2 4:3 5:r1 6:w6 7:last]" {
					t.Errorf("the steps are %s", got)
				}
			})
		})
	}
}

// TestJournalOfAStoreThatIsAway cannot record for longer than is waited for it: the attempt does not fail, and goes on once the store is
// back, with what is recorded.
func TestJournalOfAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: historymem.New()}
		fail := func(n int) {
			store.mu.Lock()
			defer store.mu.Unlock()
			store.fails = n
		}
		calls := 0
		r := newRunner(t, store, graph.Options{Work: graph.WorkAll, Activities: journaled(func(ctx context.Context, j activities.Journal) (activities.End, error) {
			steps, err := j.Steps(ctx)
			if err != nil {
				return activities.End{}, err
			}
			calls++
			for i := len(steps); i < 3; i++ {
				if i == 1 && calls == 1 {
					fail(7) // one more than Record tries
				}
				if err := j.Record(ctx, activities.Step{Key: fmt.Sprint(i), Kind: "made"}); err != nil {
					fail(0)
					return activities.End{}, err
				}
			}
			return activities.End{Result: &activities.Result{Output: object{}}}, nil
		})})
		start(t, r, "r", clerical(t), nil)
		if run := settled(t, r, "r"); run.Status != machine.Completed || calls != 2 {
			t.Errorf("the run is %s after %d calls: %s %s", run.Status, calls, run.ErrorCode, run.Error)
		}
	})
}

// unreadable is a store whose next reads fail.
type unreadable struct {
	history.Store
	fails atomic.Int32
}

func (u *unreadable) Read(ctx context.Context, id string, from int64, limit int) ([]history.Record, error) {
	if u.fails.Add(-1) >= 0 {
		return nil, errDisk
	}
	return u.Store.Read(ctx, id, from, limit)
}

// TestJournalThatCannotBeRead: an attempt whose journal cannot be read for a moment, or for longer than is waited for it, goes on once the
// store is back. It does not fail.
func TestJournalThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, fails := range []int32{1, 6} {
		synctest.Test(t, func(t *testing.T) {
			store := &unreadable{Store: historymem.New()}
			armed, done := false, make(chan struct{})
			r := newRunner(t, store, graph.Options{Work: graph.WorkAll, Activities: journaled(func(ctx context.Context, j activities.Journal) (activities.End, error) {
				if armed {
					armed = false
					store.fails.Store(fails)
				}
				steps, err := j.Steps(ctx)
				if err != nil {
					store.fails.Store(0)
					return activities.End{}, err
				}
				if len(steps) == 0 {
					armed = true
					return activities.End{Steps: []activities.Step{{Key: "0", Kind: "made"}}, Until: time.Now().Add(time.Minute)}, nil
				}
				close(done)
				return activities.End{Result: &activities.Result{Output: object{"steps": len(steps)}}}, nil
			})})
			start(t, r, "r", clerical(t), nil)
			<-done // a status reads the journal, too, and would take one of the failures
			if run := settled(t, r, "r"); run.Status != machine.Completed {
				t.Errorf("%d reads fail: the run is %s: %s %s", fails, run.Status, run.ErrorCode, run.Error)
			}
		})
	}
}
