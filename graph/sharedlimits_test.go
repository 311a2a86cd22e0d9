package graph_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
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

// state returns the largest number of attempts in flight, and the numbers begun by processes.
func (m *meter) state() (most int, by map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.most, maps.Clone(m.by)
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
				most, by := m.state()
				if most > concurrent || most < concurrent && c.ideal < rate {
					t.Errorf("%d attempts at once", most)
				}
				if n := m.mostIn(time.Second); n > 155 {
					t.Errorf("%d attempts begin within a second", n)
				}
				t.Logf("%d of %d, %d at once, %d within a second, %v", got, ideal, most, m.mostIn(time.Second), by)
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
				most, by := m.state()
				if most > concurrent || got < ideal*3/4 {
					t.Errorf("%d attempts at once, and %d of %d begin", most, got, ideal)
				}
				t.Logf("%d of %d, %v, before %v", got, ideal, by, before)
			})
		})
	}
}

// TestFewSlotsWithARate: more processes than slots share a limit that also has a rate. A process keeps its slot while it awaits a start, so
// that they reach the rate.
func TestFewSlotsWithARate(t *testing.T) {
	t.Parallel()
	for _, limit := range []history.SharedLimit{{Concurrent: 2, PerSecond: 5}, {Concurrent: 2, PerSecond: 0.5}, {Concurrent: 1, PerSecond: 2}, {Concurrent: 2}} {
		t.Run(fmt.Sprint(limit.Concurrent, "_", limit.PerSecond), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				limit.Class = "tool_call"
				store, m := historymem.New(), &meter{lasts: 300 * time.Millisecond}
				d := linear(t, "w", "n0")
				var runners []*graph.Runner
				for i := range 3 {
					runners = append(runners, newRunner(t, store, graph.Options{Activities: m.as(fmt.Sprint(i)), Capacity: 10}))
				}
				setLimits(t, runners[0], limit)
				time.Sleep(3 * time.Second) // they keep to a limit within two
				const each = 10
				for i, r := range runners {
					startRuns(t, r, d, i*1000, each)
				}
				ideal := float64(limit.Concurrent) / m.lasts.Seconds() // attempts in a second
				if limit.PerSecond > 0 {
					ideal = min(ideal, limit.PerSecond)
				}
				begun := time.Now()
				time.Sleep(time.Duration(float64(len(runners)*each/2) / ideal * float64(time.Second)))
				got, want := m.between(begun, time.Now()), min(len(runners)*each, int(ideal*time.Since(begun).Seconds()))
				if got < want*3/5 {
					t.Errorf("%d of %d attempts begin in %s", got, want, time.Since(begun))
				}
				time.Sleep(time.Duration(float64(len(runners)*each)/ideal*2) * time.Second)
				time.Sleep(5 * time.Second)
				if n := m.between(time.Time{}, time.Now().Add(time.Second)); n != len(runners)*each {
					t.Errorf("%d attempts have begun", n)
				}
				if most, _ := m.state(); most > limit.Concurrent {
					t.Errorf("%d attempts at once", most)
				}
			})
		})
	}
}

// TestSharedLimitsOverAFile: four processes with the same file open keep to a limit, and lose no time by it.
func TestSharedLimitsOverAFile(t *testing.T) {
	t.Parallel()
	const concurrent, rate, processes, runs = 20, 150, 4, 300
	file := filepath.Join(t.TempDir(), "runs.db")
	m := &meter{lasts: 40 * time.Millisecond}
	d := linear(t, "w", "n0")
	front := newRunner(t, openFile(t, file), graph.Options{Work: graph.WorkNone})
	setLimits(t, front, history.SharedLimit{Class: "tool_call", Concurrent: concurrent, PerSecond: rate})
	startRuns(t, front, d, 0, runs)
	for i := range processes {
		newRunner(t, openFile(t, file), graph.Options{Activities: m.as(fmt.Sprint(i)), Work: graph.WorkAll, Capacity: 10})
	}
	wantCompleted(t, front, runs)
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.SortFunc(m.begun, time.Time.Compare)
	first, last := m.begun[0], m.begun[len(m.begun)-1]
	// The first one may have begun late. The machine may be busy, so this test does not count the attempts within each second.
	if most := int((last.Sub(first)+100*time.Millisecond).Seconds()*rate) + 1; len(m.begun) != runs || len(m.begun) > most || m.most > concurrent {
		t.Errorf("%d attempts begin in %s, %d at once", len(m.begun), last.Sub(first), m.most)
	}
	t.Logf("%d in %s, %d at once, %v", len(m.begun), last.Sub(first), m.most, m.by)
}

// questions counts the questions to a store about shared limits.
type questions struct {
	history.Store
	grants, looks atomic.Int64
}

func (a *questions) limiter() history.Limiter {
	l, _ := history.As[history.Limiter](a.Store)
	return l
}

func (a *questions) SetLimits(ctx context.Context, limits ...history.SharedLimit) error {
	return a.limiter().SetLimits(ctx, limits...)
}

func (a *questions) SharedLimits(ctx context.Context) ([]history.LimitUse, error) {
	a.looks.Add(1)
	return a.limiter().SharedLimits(ctx)
}

func (a *questions) Grant(ctx context.Context, process string, wants ...history.Want) ([]history.Granted, error) {
	a.grants.Add(1)
	return a.limiter().Grant(ctx, process, wants...)
}

// TestSharedLimitsCostLittle: without shared limits, a process only looks for them once a second. With a limit of attempts at once, it asks for
// slots when it begins and ends to need them, not for each attempt; with a rate, it reserves several starts at once.
func TestSharedLimitsCostLittle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit history.SharedLimit
		most  int64 // questions
	}{
		{history.SharedLimit{Class: "llm_call", Concurrent: 1}, 0}, {history.SharedLimit{Class: "tool_call", Concurrent: 8}, 8},
		{history.SharedLimit{Class: "tool_call", PerSecond: 100}, 100},
	} {
		t.Run(fmt.Sprintf("%+v", c.limit), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const runs = 200
				store := historymem.New()
				counts := &questions{Store: store}
				m := &meter{lasts: 100 * time.Millisecond}
				r := newRunner(t, history.Wrap(counts, store), graph.Options{Activities: m.as("p")})
				setLimits(t, r, c.limit)
				begun := time.Now()
				startRuns(t, r, linear(t, "w", "n0"), 0, runs)
				time.Sleep(30 * time.Second)
				if n := counts.grants.Load(); n > c.most {
					t.Errorf("%d questions for %d attempts", n, runs)
				}
				if n, seconds := counts.looks.Load(), int64(time.Since(begun)/time.Second); n > seconds+3 && c.most == 0 {
					t.Errorf("%d looks in %d s", n, seconds)
				}
				wantCompleted(t, r, runs)
				for _, u := range sharedLimits(t, r) {
					if len(u.Shares) > 0 {
						t.Errorf("an idle process holds %+v", u.Shares)
					}
				}
			})
		})
	}
}

func sharedLimits(t *testing.T, r *graph.Runner) []history.LimitUse {
	t.Helper()
	uses, err := r.SharedLimits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return uses
}

// TestSharedLimitsChange: processes keep to limits that another one sets or removes while attempts wait.
func TestSharedLimitsChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		m := &meter{lasts: time.Second}
		d := linear(t, "w", "n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7")
		r := newRunner(t, store, graph.Options{Activities: m.as("p"), Capacity: -1})
		other := newRunner(t, store, graph.Options{Work: graph.WorkNone})
		at := func(seconds float64, want int) {
			t.Helper()
			time.Sleep(time.Duration(seconds * float64(time.Second)))
			synctest.Wait()
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.now != want {
				t.Errorf("%d attempts are in flight, want %d", m.now, want)
			}
		}
		setLimits(t, other, history.SharedLimit{Class: "step", Concurrent: 1})
		startRuns(t, r, d, 0, 6)
		at(0.5, 6)
		setLimits(t, other, history.SharedLimit{Class: "tool_call", Concurrent: 2})
		at(3, 2) // the process has seen it within a second, and the attempts in flight have ended
		waiting := 0
		for i := range 6 {
			run := status(t, other, fmt.Sprint("r", i))
			if p := run.Pending[0]; p.Limit != nil {
				waiting++
				if !p.Queued || p.Limit.Class != "tool_call" || p.Limit.Slots() != 2 || p.Limit.Concurrent != 2 {
					t.Errorf("the attempt waits for %+v", p.Limit)
				}
			}
		}
		if waiting != 4 {
			t.Errorf("%d runs wait for the limit", waiting)
		}
		setLimits(t, r, history.SharedLimit{Class: "tool_call", Concurrent: 3})
		at(0.5, 3) // at once in the process that sets it
		setLimits(t, other, history.SharedLimit{Class: "tool_call"})
		at(1.5, 6)
		setLimits(t, r, history.SharedLimit{Class: "tool_call:x", Concurrent: 1}) // a class that no attempt has
		wantCompleted(t, r, 6)
	})
}

// TestNoSharedLimits: a store that keeps no shared limits says so, and limits out of range are rejected.
func TestNoSharedLimits(t *testing.T) {
	t.Parallel()
	r := newRunner(t, struct{ history.Store }{historymem.New()}, graph.Options{})
	_, err := r.SharedLimits(t.Context())
	for _, err := range []error{err, r.SetLimits(t.Context(), history.SharedLimit{Class: "step", Concurrent: 1})} {
		if !errors.Is(err, problem.Unsupported) {
			t.Errorf("got %v", err)
		}
	}
	r = newRunner(t, historymem.New(), graph.Options{})
	if err := r.SetLimits(t.Context(), history.SharedLimit{Class: "step", Concurrent: -1}); !errors.Is(err, problem.UsageError) {
		t.Errorf("got %v", err)
	}
	if uses := sharedLimits(t, r); len(uses) > 0 {
		t.Errorf("got %+v", uses)
	}
}
