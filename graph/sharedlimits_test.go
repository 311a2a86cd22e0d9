package graph_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
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
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// meter performs attempts, and notes when they begin in all processes together.
type meter struct {
	lasts time.Duration

	mu        sync.Mutex
	now, most int
	begun     []time.Time
	by        map[string]int
}

// as returns the executor of a process.
func (m *meter) as(process string) activities.Executor {
	return activities.ExecutorFunc(func(ctx context.Context, req activities.Request) (activities.Result, error) {
		m.mu.Lock()
		m.now++
		m.most = max(m.most, m.now)
		m.begun = append(m.begun, time.Now())
		if m.by == nil {
			m.by = map[string]int{}
		}
		m.by[process]++
		m.mu.Unlock()
		defer func() {
			m.mu.Lock()
			m.now--
			m.mu.Unlock()
		}()
		_, err := after(m.lasts, nil)(ctx, req)
		return activities.Result{Output: object{}}, err
	})
}

// between returns the number of attempts begun from one time until before another.
func (m *meter) between(from, to time.Time) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, at := range m.begun {
		if !at.Before(from) && at.Before(to) {
			n++
		}
	}
	return n
}

// mostIn returns the largest number of attempts begun within a time, wherever it begins.
func (m *meter) mostIn(window time.Duration) (most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.SortFunc(m.begun, time.Time.Compare)
	first := 0
	for i, at := range m.begun {
		for at.Sub(m.begun[first]) >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// attempts returns the number of attempts that a process has begun.
func (m *meter) attempts(process string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.by[process]
}

// startRuns starts runs of a workflow in a process that performs none.
func startRuns(t *testing.T, front *graph.Runner, d *definition.Document, from, n int) {
	t.Helper()
	for i := range n {
		if _, err := front.Start(t.Context(), graph.StartRequest{ExecutionID: fmt.Sprint("r", from+i), Definition: d, Wait: waitFor(0)}); err != nil {
			t.Fatal(err)
		}
	}
}

func setLimits(t *testing.T, r *graph.Runner, limits ...history.SharedLimit) {
	t.Helper()
	if err := r.SetLimits(t.Context(), limits...); err != nil {
		t.Fatal(err)
	}
}

// TestSharedLimits has four processes perform attempts under a limit of 20 at once and 150 a second. The live ones never have more than 20 in
// flight, in no second do more than 155 begin, and they reach what the limit allows. In the first case the rate is what limits them, in the
// others the number at once. In two cases one process dies from time to time, and another one comes.
func TestSharedLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lasts time.Duration
		ideal int // attempts in a second
		kills bool
	}{{40 * time.Millisecond, 150, true}, {400 * time.Millisecond, 50, false}, {400 * time.Millisecond, 50, true}} {
		t.Run(fmt.Sprintf("%s,kills=%t", c.lasts, c.kills), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const concurrent, rate, processes = 20, 150, 4
				seconds, killEvery := soak.Size(5, 4, 60), soak.Size(2, 2, 5)
				store := historymem.New()
				m := &meter{lasts: c.lasts}
				d := linear(t, "w", "n0")
				front := newRunner(t, store, graph.Options{Work: graph.WorkNone})
				setLimits(t, front, history.SharedLimit{Class: "tool_call", Concurrent: concurrent, PerSecond: rate})
				type mortal struct {
					*graph.Runner
					store *historytest.FaultStore
				}
				begin := func(name int) mortal {
					s := historytest.NewFaultStore(store)
					o := graph.Options{Activities: m.as(fmt.Sprint(name)), Work: graph.WorkAll, Capacity: 30, LeaseTTL: time.Second}
					return mortal{newRunner(t, s, o), s}
				}
				startRuns(t, front, d, 0, c.ideal)
				var live []mortal
				for i := range processes {
					live = append(live, begin(i))
				}
				time.Sleep(2 * time.Second) // they begin to claim after a second, and share the slots within another one
				begun := time.Now()
				for i := range seconds {
					startRuns(t, front, d, (i+1)*c.ideal, c.ideal)
					time.Sleep(time.Second)
					if c.kills && (i+1)%killEvery == 0 {
						kill(t, live[0].Runner, live[0].store)
						live = append(live[1:], begin(processes+i))
					}
				}
				got, ideal := m.between(begun, time.Now()), seconds*c.ideal
				if least := ideal * 95 / 100; got < least && c.ideal == rate || got < least && !c.kills {
					t.Errorf("%d attempts begin in %d seconds, ideal %d", got, seconds, ideal)
				}
				if m.most > concurrent || m.most < concurrent && c.ideal < rate {
					t.Errorf("%d attempts at once", m.most)
				}
				if n := m.mostIn(time.Second); n > 155 {
					t.Errorf("%d attempts begin within a second", n)
				}
				t.Logf("%d of %d, %d at once, %d within a second, %v", got, ideal, m.most, m.mostIn(time.Second), m.by)
			})
		})
	}
}

// TestSharedLimitsAreFair: a process that holds all slots returns those beyond its fair share when others have attempts that wait. With fewer slots
// than processes they take turns.
func TestSharedLimitsAreFair(t *testing.T) {
	t.Parallel()
	for _, concurrent := range []int{8, 1} {
		t.Run(fmt.Sprint(concurrent), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const processes = 4
				store, m := historymem.New(), &meter{lasts: 100 * time.Millisecond}
				d := linear(t, "w", "n0")
				var runners []*graph.Runner
				for i := range processes {
					runners = append(runners, newRunner(t, store, graph.Options{Activities: m.as(fmt.Sprint(i)), Capacity: 10}))
				}
				setLimits(t, runners[0], history.SharedLimit{Class: "tool_call", Concurrent: concurrent})
				time.Sleep(time.Second)
				startRuns(t, runners[0], d, 0, 60*concurrent)
				time.Sleep(time.Second)
				for i, r := range runners[1:] {
					startRuns(t, r, d, (i+1)*1000, 40*concurrent)
				}
				time.Sleep(2 * time.Second)
				var before []int
				for i := range processes {
					before = append(before, m.attempts(fmt.Sprint(i)))
				}
				const lasts = 12 * time.Second
				begun := time.Now()
				time.Sleep(lasts / time.Duration(min(concurrent, 4)))
				got := m.between(begun, time.Now())
				ideal := concurrent * int(time.Since(begun)/m.lasts)
				for i := range processes {
					if n := m.attempts(fmt.Sprint(i)) - before[i]; n < ideal/processes/2 {
						t.Errorf("process %d begins %d of %d attempts", i, n, got)
					}
				}
				if m.most > concurrent || got < ideal*3/4 {
					t.Errorf("%d attempts at once, and %d of %d begin", m.most, got, ideal)
				}
				t.Logf("%d of %d, %v, before %v", got, ideal, m.by, before)
			})
		})
	}
}

var (
	_ = errors.Is
	_ = filepath.Join
	_ = machine.Completed
	_ = problem.Unsupported
)
