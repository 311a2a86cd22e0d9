package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// fakeDriver notes the calls of a Lease, a Queue or a Search.
type fakeDriver struct {
	mu    sync.Mutex
	begun time.Time
	calls []string
	// takes are the runs that can be taken over, learned reports that a workflow has become known.
	takes   map[string]bool
	learned bool
}

func (d *fakeDriver) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, fmt.Sprintf("%v ", time.Since(d.begun))+fmt.Sprintf(format, args...))
}

func (d *fakeDriver) look(x *run.Run, seq int64)                 {}
func (d *fakeDriver) loseLease(x *run.Run, process string)       { d.note("lost %s", x.ID()) }
func (d *fakeDriver) takeReady(string, string, history.ReadyRun) {}
func (d *fakeDriver) giveAway(string)                            {}
func (d *fakeDriver) takeBack(executionID, process string)       { d.note("back %s", executionID) }
func (d *fakeDriver) fire(t Timer)                               { d.note("fire %s own=%v", t.ExecutionID, t.Own) }
func (d *fakeDriver) reconsider(context.Context) func() bool {
	return func() bool {
		if d.learned {
			d.takes["unknown"] = true
		}
		return d.learned
	}
}

func (d *fakeDriver) takeOrphan(_ context.Context, id string) (bool, error) {
	d.note("take %s", id)
	return d.takes[id], nil
}

// testEnv is an environment whose goroutines end with the test.
func testEnv(t *testing.T, store history.Store) work.Env {
	var tasks sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); tasks.Wait() })
	return work.Env{Store: store, Now: time.Now, Log: slog.New(slog.DiscardHandler), Go: tasks.Go, Context: ctx}
}

// TestALeaseIsRenewedWhileRunsAreOwned, and lost in time for others to take the runs over.
func TestALeaseIsRenewedWhileRunsAreOwned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historytest.NewFaultStore(historymem.New())
		store.Set(historytest.Fault{Reads: true}) // count all calls
		d := &fakeDriver{begun: time.Now()}
		l := newLease(testEnv(t, store), "test", 30*time.Second, d)
		x := run.NewTable(&run.Environment{Env: l.Env}).Hold("r")
		name, err := l.Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		alive := l.Alive(name)
		l.Owns(x, name, true)
		time.Sleep(10 * time.Minute)
		if n := renewals(store); n < 20 || alive.Err() != nil || len(d.calls) > 0 {
			t.Errorf("%d renewals in 10 minutes, %v, %v", n, alive.Err(), d.calls)
		}
		l.Owns(x, name, false)
		time.Sleep(time.Minute)
		n := renewals(store)
		if time.Sleep(10 * time.Minute); renewals(store) != n {
			t.Error("the lease of a process that owns nothing is renewed")
		}

		if name, err = l.Hold(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.Owns(x, name, true)
		alive = l.Alive(name)
		store.Set(historytest.Fault{At: 1, Dead: true, Reads: true})
		time.Sleep(24 * time.Second)
		if alive.Err() != nil {
			t.Errorf("lost already: %v", d.calls)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !errors.Is(context.Cause(alive), work.ErrLeaseLost) || len(d.calls) == 0 || d.calls[0][len(d.calls[0])-len("lost r"):] != "lost r" {
			t.Errorf("after 29 s: %v, %v", context.Cause(alive), d.calls)
		}
		store.Revive()
		if again, err := l.Hold(t.Context()); err != nil || again == name {
			t.Errorf("goes on as %q, was %q: %v", again, name, err)
		}
		l.Owns(x, name, false)
	})
}

func renewals(store *historytest.FaultStore) (n int) {
	for _, call := range store.Calls() {
		if call == "Renew" {
			n++
		}
	}
	return n
}

// TestTimersFireWhenTheyAreDue: the earliest of each run, which may change; one that another process set fires unless an earlier one is known.
func TestTimersFireWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{begun: time.Now()}
		q := &Queue{Env: testEnv(t, historymem.New()), runs: d}
		runs := run.NewTable(&run.Environment{Env: q.Env})
		at := func(seconds ...int) (ts []machine.Timer) {
			for _, s := range seconds {
				ts = append(ts, machine.Timer{Key: fmt.Sprint(s), Due: d.begun.Add(time.Duration(s) * time.Second)})
			}
			return ts
		}
		q.Set(runs.Hold("two"), at(20, 10))
		q.Set(runs.Hold("moved"), at(5))
		q.Set(runs.Hold("moved"), at(30))
		q.Set(runs.Hold("gone"), at(15))
		q.Set(runs.Hold("gone"), nil)
		q.Offer("other", d.begun.Add(40*time.Second))
		q.Offer("other", d.begun.Add(25*time.Second))
		q.Offer("two", d.begun.Add(time.Minute))
		time.Sleep(time.Hour)
		synctest.Wait()
		if want := []string{"10s fire two own=true", "25s fire other own=false", "30s fire moved own=true"}; !slices.Equal(d.calls, want) {
			t.Errorf("%q, want %q", d.calls, want)
		}
	})
}

// TestRunsThatAreLeftDoNotKeepOthersFromTheirTurn: those not yet looked at come first, then the one whose look is longest ago.
func TestRunsThatAreLeftDoNotKeepOthersFromTheirTurn(t *testing.T) {
	t.Parallel()
	var turns Turns
	choose := func(n int, ids ...string) (chosen []string, more bool) {
		turns, more := turns.Choose(ids, n)
		for _, turn := range turns {
			chosen = append(chosen, fmt.Sprint(turn.ExecutionID, turn.Again))
		}
		return chosen, more
	}
	for _, c := range []struct {
		ids  []string
		want []string
		more bool
	}{
		{[]string{"a", "b", "c"}, []string{"afalse", "bfalse"}, true},
		{[]string{"a", "b", "c"}, []string{"cfalse", "atrue"}, false},
		{[]string{"a", "b", "c", "d"}, []string{"dfalse", "btrue"}, false},
		{[]string{"a", "b"}, []string{"atrue", "btrue"}, false},
		{[]string{"c", "d", "e"}, []string{"cfalse", "dfalse"}, true}, // forgotten meanwhile
	} {
		if got, more := choose(2, c.ids...); !slices.Equal(got, c.want) || more != c.more {
			t.Errorf("of %v: %v, more: %t, want %v, %t", c.ids, got, more, c.want, c.more)
		}
	}
}

// unowned is a store whose runs have no driver.
type unowned struct {
	history.Store
	ids []string
}

func (u unowned) Unowned(context.Context, int) ([]string, error) { return slices.Clone(u.ids), nil }

// TestAPatientSearchTriesAgainOnceAWorkflowIsKnown.
func TestAPatientSearchTriesAgainOnceAWorkflowIsKnown(t *testing.T) {
	t.Parallel()
	for _, learned := range []bool{false, true} {
		d := &fakeDriver{begun: time.Now(), takes: map[string]bool{"fit": true}, learned: learned}
		s := &Search{Env: testEnv(t, unowned{historymem.New(), []string{"unknown", "fit"}}), TTL: time.Minute, runs: d}
		taken, _, err := s.TakeOrphans(t.Context(), 10, true)
		want := []string{"fit"}
		if learned {
			want = append(want, "unknown")
		}
		if err != nil || !slices.Equal(taken, want) {
			t.Errorf("learned %v: %v, want %v, %v", learned, taken, want, err)
		}
	}
}

// TestOrphansBehindOneThatCannotBeTakenAreOwed: with room for one run, the next ones are checked as soon as there is room again, although the first
// was left to others.
func TestOrphansBehindOneThatCannotBeTakenAreOwed(t *testing.T) {
	t.Parallel()
	d := &fakeDriver{begun: time.Now(), takes: map[string]bool{"fit": true}}
	s := &Search{
		Env: testEnv(t, unowned{historymem.New(), []string{"unfit", "fit"}}), TTL: time.Minute, runs: d,
		Free: func() int { return 1 },
	}
	for _, owed := range []bool{true, false} {
		if !s.takeAll() || s.owed.Load() != owed {
			t.Errorf("orphans are owed: %t, want %t", !owed, owed)
		}
	}
}

// TestPresenceEndsWithTheSleepOfTheHost: a process whose rounds stop for a while counts as one that has just begun.
func TestPresenceEndsWithTheSleepOfTheHost(t *testing.T) {
	t.Parallel()
	begun := time.Unix(1000, 0)
	var p Presence
	p.Begin(begun)
	at := begun
	for range 10 {
		p.beat(at)
		at = at.Add(searchInterval)
	}
	if since := p.Since(at); !since.Equal(begun) {
		t.Errorf("present since %v, want %v", since, begun)
	}
	at = at.Add(time.Hour)
	if since := p.Since(at); !since.Equal(at) {
		t.Errorf("after an hour of sleep: present since %v, want %v", since, at)
	}
}

// TestAWaiterHearsOfItsRuns, and of no others. Progress that it does not read is dropped.
func TestAWaiterHearsOfItsRuns(t *testing.T) {
	t.Parallel()
	var n Notifier
	w := n.Waiter(true)
	if !w.Add([]string{"a", "b"}) || w.Add([]string{"b"}) {
		t.Error("a run is new to a waiter once")
	}
	heard := func() bool {
		select {
		case <-w.signal:
			return true
		default:
			return false
		}
	}
	if n.Changed("c"); heard() {
		t.Error("woken by another run")
	}
	n.Changed("b")
	if n.Changed("b"); !heard() || heard() {
		t.Error("two changes at once wake it once")
	}
	for range 2 * maxUnread {
		n.Report(Progress{ExecutionID: "a", NodeID: "x"})
	}
	n.Report(Progress{ExecutionID: "c", NodeID: "y"})
	if len(w.progress) != maxUnread {
		t.Errorf("%d unread", len(w.progress))
	}
	w.Stop()
	if n.Changed("a"); heard() || len(n.waiters) > 0 {
		t.Error("woken after its end")
	}
}
