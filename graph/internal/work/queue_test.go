package work_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/work"
)

// bench is a queue whose attempts are ended by the test.
type bench struct {
	*work.Queue
	mu    sync.Mutex
	turns []string
	done  map[string]func()
	left  []string
	end   context.CancelFunc
}

func newBench(limits ...work.Limit) *bench { return newCapacityBench(0, limits...) }

func newCapacityBench(capacity int, limits ...work.Limit) *bench {
	ctx, cancel := context.WithCancel(context.Background())
	b := &bench{done: map[string]func(){}, end: cancel}
	b.Queue = work.NewQueue(work.Env{Go: func(f func()) { go f() }, Context: ctx}, limits, capacity)
	return b
}

func (b *bench) enter(ctx context.Context, name string, priority int, classes ...string) {
	run, _, _ := strings.Cut(name, ".")
	b.Enter(&work.Ticket{
		Run: run, Priority: priority, Classes: classes, Context: ctx,
		Turn: func(done func()) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.turns, b.done[name] = append(b.turns, name), done
		},
		Left: func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.left = append(b.left, name)
		},
	})
}

// drain ends attempts in the order in which their turns came, until none waits.
func (b *bench) drain() string {
	for i := 0; i < len(b.turns); i++ {
		b.done[b.turns[i]]()
	}
	return strings.Join(b.turns, " ")
}

// have checks the turns so far.
func (b *bench) have(t *testing.T, want string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if got := strings.Join(b.turns, " "); got != want {
		t.Errorf("turns %s, want %s", got, want)
	}
}

// endLast ends the attempt with the last turn, and returns the next one.
func (b *bench) endLast() (next string) {
	b.done[b.turns[len(b.turns)-1]]()
	return b.turns[len(b.turns)-1]
}

// A run with many attempts does not delay one with few; runs of a higher priority come first.
func TestTurnsGoRoundTheRuns(t *testing.T) {
	t.Parallel()
	b := newBench(work.Limit{Class: "step", Concurrent: 1})
	for i := range 5 {
		b.enter(t.Context(), fmt.Sprintf("a.%d", i), 0, "step")
	}
	b.enter(t.Context(), "b.0", 0, "step")
	b.enter(t.Context(), "b.1", 0, "step")
	b.enter(t.Context(), "c.0", 7, "step")
	b.enter(t.Context(), "c.1", 7, "step")
	b.drain()
	b.have(t, "a.0 c.0 c.1 a.1 b.0 a.2 b.1 a.3 a.4")
}

// The runs take turns across classes, too, where these share a limit or the capacity.
func TestTurnsGoRoundTheClasses(t *testing.T) {
	t.Parallel()
	for _, capacity := range []int{0, 1} {
		b := newCapacityBench(capacity, work.Limit{Class: "step", Concurrent: 1 + capacity}, work.Limit{Class: "step:a", Concurrent: 9})
		for i := range 4 {
			b.enter(t.Context(), fmt.Sprintf("a.%d", i), 0, "step", "step:a")
		}
		b.enter(t.Context(), "b.0", 0, "step")
		b.enter(t.Context(), "c.0", 0, "step")
		b.enter(t.Context(), "b.1", 0, "step")
		b.drain()
		b.have(t, "a.0 a.1 b.0 c.0 a.2 b.1 a.3")
	}
}

// Attempts that arrive all the time do not starve a run: with the same priority it has a turn in each round, with a higher one every
// twentieth turn.
func TestNewcomersDoNotStarveARun(t *testing.T) {
	t.Parallel()
	for priority, want := range map[int][]int{0: {0, 1, 4}, 100: {0, 20, 40}} {
		b := newBench(work.Limit{Class: "step", Concurrent: 1})
		for i := range 3 {
			b.enter(t.Context(), fmt.Sprintf("old.%d", i), 0, "step")
		}
		for i := range 41 {
			b.enter(t.Context(), fmt.Sprintf("new%d.0", i), priority, "step")
			b.enter(t.Context(), fmt.Sprintf("new%d.0", i+100), priority, "step")
			b.endLast()
		}
		for i, at := range want {
			if got := slices.Index(b.turns, fmt.Sprintf("old.%d", i)); got != at {
				t.Errorf("priority %d: turn %d of the run is number %d, want %d: %s", priority, i, got, at, b.turns)
			}
		}
	}
}

// A run of a higher priority has the next free turns, however many others wait, whatever their rounds and classes.
func TestPriorityHasTheNextFreeTurn(t *testing.T) {
	t.Parallel()
	for _, classes := range [][]string{{"step"}, {"step", "step:charge"}} {
		b := newBench(work.Limit{Class: "step", Concurrent: 1}, work.Limit{Class: "step:charge", Concurrent: 1})
		for i := range 1000 {
			b.enter(t.Context(), fmt.Sprintf("low%d.0", i), 0, "step")
			b.enter(t.Context(), "many."+fmt.Sprint(i), 0, "step")
		}
		for range 105 { // into the first round, after a turn by age
			b.endLast()
		}
		for i := range 3 {
			name := fmt.Sprintf("urgent.%d", i)
			b.enter(t.Context(), name, 100, classes...)
			if next := b.endLast(); next != name {
				t.Errorf("%s: the next turn was that of %s", name, next)
			}
		}
		if next := b.endLast(); strings.HasPrefix(next, "urgent") {
			t.Errorf("%s had a fourth turn", next)
		}
		// One with branches has all but every twentieth.
		for i := range 40 {
			b.enter(t.Context(), fmt.Sprintf("wide.%d", i), 50, classes...)
		}
		at := len(b.turns)
		b.drain()
		var others []int
		for i, name := range b.turns[at : at+42] {
			if !strings.HasPrefix(name, "wide") {
				others = append(others, i)
			}
		}
		if len(others) != 2 || others[1] != others[0]+20 {
			t.Errorf("beside the branches, others had the turns %d", others)
		}
		if n := len(b.turns); n != 2043 || b.Waiting() != 0 {
			t.Errorf("%d turns, %d wait", n, b.Waiting())
		}
	}
}

// Attempts of a high priority that arrive all the time do not starve an attempt that needs other places, too.
func TestPriorityDoesNotStarveOtherClasses(t *testing.T) {
	t.Parallel()
	b := newBench(work.Limit{Class: "step", Concurrent: 1}, work.Limit{Class: "step:charge", Concurrent: 1})
	b.enter(t.Context(), "first.0", 0, "step")
	b.enter(t.Context(), "old.0", 0, "step", "step:charge")
	b.enter(t.Context(), "old.1", 0, "step", "step:charge")
	for i := range 40 {
		b.enter(t.Context(), fmt.Sprintf("new%d.0", i), 100, "step")
		b.enter(t.Context(), fmt.Sprintf("new%d.1", i), 100, "step")
		b.endLast()
	}
	if i, j := slices.Index(b.turns, "old.0"), slices.Index(b.turns, "old.1"); i != 20 || j != 40 {
		t.Errorf("the turns of the run are number %d and %d: %s", i, j, b.turns)
	}
}

// A twentieth turn goes to the attempt that has waited longest, not to a younger one of higher priority.
func TestTheOldestHasTheTwentiethTurn(t *testing.T) {
	t.Parallel()
	b := newBench(work.Limit{Class: "step", Concurrent: 1})
	b.enter(t.Context(), "first.0", 0, "step")
	b.enter(t.Context(), "oldest.0", -1, "step")
	b.enter(t.Context(), "older.0", 5, "step")
	for i := range 50 {
		b.enter(t.Context(), fmt.Sprintf("new%d.0", i), 100, "step")
	}
	b.drain()
	if i, j := slices.Index(b.turns, "oldest.0"), slices.Index(b.turns, "older.0"); i != 20 || j != 40 {
		t.Errorf("the old attempts had the turns %d and %d: %s", i, j, b.turns)
	}
}

// Every twentieth turn is not lost by a class whose places are free at other turns.
func TestEachClassHasItsTwentiethTurn(t *testing.T) {
	t.Parallel()
	b := newBench(work.Limit{Class: "a", Concurrent: 1}, work.Limit{Class: "b", Concurrent: 1})
	last := map[string]string{}
	for _, class := range []string{"a", "b"} {
		for i := range 10 {
			b.enter(t.Context(), fmt.Sprintf("old-%s%d.0", class, i), 0, class)
		}
		last[class] = "old-" + class + "0.0"
	}
	for i := range 200 {
		for _, class := range []string{"a", "b"} { // so each turn with an even number is one of class b
			b.enter(t.Context(), fmt.Sprintf("new-%s%d.0", class, i), 100, class)
			b.enter(t.Context(), fmt.Sprintf("new-%s%d.1", class, i), 100, class)
			b.done[last[class]]()
			last[class] = b.turns[len(b.turns)-1]
		}
	}
	had := map[string]int{}
	for _, name := range b.turns {
		if s, ok := strings.CutPrefix(name, "old-"); ok {
			had[s[:1]]++
		}
	}
	if had["a"] < 8 || had["b"] < 8 {
		t.Errorf("the old attempts had %v turns of %d", had, len(b.turns))
	}
}

// An attempt needs room in each of its classes, and one that has none does not keep others from theirs.
func TestAnAttemptNeedsRoomInEachClass(t *testing.T) {
	t.Parallel()
	b := newBench(work.Limit{Class: "step", Concurrent: 3}, work.Limit{Class: "step:charge", Concurrent: 1})
	for i := range 3 {
		b.enter(t.Context(), fmt.Sprintf("a%d.0", i), 0, "step", "step:charge")
		b.enter(t.Context(), fmt.Sprintf("b%d.0", i), 0, "step", "step:other")
	}
	if got, want := strings.Join(b.turns, " "), "a0.0 b0.0 b1.0"; got != want {
		t.Errorf("turns %s, want %s", got, want)
	}
	b.done["b0.0"]()
	b.done["a0.0"]()
	if got, want := strings.Join(b.turns, " "), "a0.0 b0.0 b1.0 b2.0 a1.0"; got != want {
		t.Errorf("turns %s, want %s", got, want)
	}
	if b.drain(); len(b.turns) != 6 || b.Waiting() != 0 {
		t.Errorf("%s, %d wait", b.turns, b.Waiting())
	}
}

func TestStartsPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(work.Limit{Class: "agent:x", PerSecond: 4})
		defer b.end()
		began := time.Now()
		var at []time.Duration
		for i := range 13 {
			b.Enter(&work.Ticket{
				Run: fmt.Sprint(i), Classes: []string{"agent_delegate", "agent:x"}, Context: t.Context(), Left: func() { t.Error("left") },
				Turn: func(done func()) { at = append(at, time.Since(began)); done() },
			})
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(at) != 13 || at[12] < 3*time.Second || at[12] > 3*time.Second+time.Millisecond {
			t.Fatalf("starts at %v", at)
		}
		for i := 4; i < len(at); i++ {
			if at[i]-at[i-4] < time.Second {
				t.Errorf("five starts within %s: %v", at[i]-at[i-4], at)
			}
		}
	})
}

// Cancelled attempts and those of a closed queue leave; a room that was promised to none of them is not lost.
func TestLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(work.Limit{Class: "step", Concurrent: 1})
		defer b.end()
		ctx, cancel := context.WithCancel(t.Context())
		b.enter(t.Context(), "a.0", 0, "step")
		b.enter(ctx, "b.0", 0, "step")
		b.enter(t.Context(), "c.0", 0, "step")
		b.enter(t.Context(), "d.0", 0, "step")
		cancel()
		synctest.Wait()
		b.done["a.0"]()
		b.done["a.0"]() // a second call gives nothing back
		if got := strings.Join(b.turns, " ") + " | " + strings.Join(b.left, " "); got != "a.0 c.0 | b.0" {
			t.Error(got)
		}
		b.Close()
		b.done["c.0"]()
		b.enter(t.Context(), "e.0", 0, "step")
		if got := strings.Join(b.turns, " ") + " | " + strings.Join(b.left, " "); got != "a.0 c.0 | b.0 d.0 e.0" {
			t.Error(got)
		}
	})
}

// Under a random load no limit is exceeded, nothing is lost and nothing is left over.
func TestRandomLoad(t *testing.T) {
	t.Parallel()
	for _, capacity := range []int{0, 1, 7} {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			limits := []work.Limit{{Class: "step", Concurrent: 5}, {Class: "step:a", Concurrent: 2}, {Class: "mcp:x", Concurrent: 3, PerSecond: 50}}
			b := newCapacityBench(capacity, limits...)
			defer b.end()
			sets := [][]string{{"step"}, {"step", "step:a"}, {"tool_call", "mcp:x"}, {"step", "mcp:x"}, {"free"}}
			used, all, over, ended := map[string]int{}, 0, 0, 0
			var mu sync.Mutex
			begin := func(classes []string, lasts time.Duration, done, after func()) {
				mu.Lock()
				defer mu.Unlock()
				if all++; capacity > 0 && all > capacity {
					over++
				}
				for _, c := range classes {
					used[c]++
					for _, l := range limits {
						if l.Class == c && used[c] > l.Concurrent {
							over++
						}
					}
				}
				time.AfterFunc(lasts, func() {
					mu.Lock()
					ended++
					all--
					for _, c := range classes {
						used[c]--
					}
					mu.Unlock()
					done()
					after()
				})
			}
			const attempts = 2000
			for i := range attempts {
				ctx, cancel := context.WithCancel(t.Context())
				set, lasts := sets[rng.IntN(len(sets))], time.Duration(rng.IntN(30))*time.Millisecond
				if release, ok := b.Reserve(set); ok {
					begin(set, lasts, release, cancel)
				} else {
					b.Enter(&work.Ticket{
						Run: fmt.Sprint(rng.IntN(50)), Priority: rng.IntN(3), Classes: set, Context: ctx,
						Turn: func(done func()) { begin(set, lasts, done, cancel) },
						Left: func() { mu.Lock(); defer mu.Unlock(); ended++ },
					})
				}
				if i%7 == 0 {
					time.AfterFunc(time.Duration(rng.IntN(500))*time.Millisecond, cancel)
				}
				time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if over > 0 || ended != attempts || b.Waiting() > 0 || b.InUse() > 0 {
				t.Errorf("capacity %d: %d over a limit, %d of %d ended, %d wait, %d in use", capacity, over, ended, attempts, b.Waiting(), b.InUse())
			}
		})
	}
}

// model repeats the promises of a queue in the plainest form.
type model struct {
	t           *testing.T
	b           *bench
	limits      map[string]int // the capacity under ""
	used        map[string]int
	waiting     []*modelTicket   // in order of arrival
	place       map[modelRun]int // when the run arrived in its line, or had its last turn
	clock, seen int              // seen are the turns checked
	turns       int
	byAge, kept int
}

type modelRun struct {
	run, classes string
	priority     int
}

type modelTicket struct {
	modelRun
	name    string
	classes []string // those with a limit, and ""
	turns   int      // at its arrival
}

func (m *model) room(x *modelTicket) bool {
	return !slices.ContainsFunc(x.classes, func(c string) bool { return m.used[c] >= m.limits[c] })
}

// mayLeave reports whether a place that x needs may be kept for an attempt that has been passed.
func (m *model) mayLeave(x *modelTicket) bool {
	return slices.ContainsFunc(m.waiting, func(h *modelTicket) bool {
		return len(h.classes) > 1 && !m.room(h) && m.turns-h.turns >= 19 && slices.ContainsFunc(h.classes, func(c string) bool {
			return slices.Contains(x.classes, c) && m.used[c] == m.limits[c]-1
		})
	})
}

// better reports whether x has the next turn before y.
func (m *model) better(x, y *modelTicket) bool {
	if x.priority != y.priority {
		return x.priority > y.priority
	}
	return m.place[x.modelRun] < m.place[y.modelRun]
}

// best returns the ticket with the next turn, but for those that may leave their place to another.
func (m *model) best() (best *modelTicket) {
	for _, x := range m.waiting {
		switch {
		case !m.room(x) || best != nil && !m.better(x, best):
		case m.mayLeave(x):
			m.kept++
		default:
			best = x
		}
	}
	return best
}

func (m *model) enter(x *modelTicket) {
	m.clock++
	if !slices.ContainsFunc(m.waiting, func(y *modelTicket) bool { return y.modelRun == x.modelRun }) {
		m.place[x.modelRun] = m.clock
	}
	x.turns = m.turns
	m.waiting = append(m.waiting, x)
}

// check checks the turns since the last call.
func (m *model) check() {
	for ; m.seen < len(m.b.turns); m.seen++ {
		name, best := m.b.turns[m.seen], m.best()
		i := slices.IndexFunc(m.waiting, func(x *modelTicket) bool { return x.name == name })
		x := m.waiting[i]
		if !m.room(x) {
			m.t.Fatalf("%s has a turn without room", name)
		}
		if best != nil && m.better(best, x) {
			m.byAge++
			if j := slices.IndexFunc(m.waiting, func(y *modelTicket) bool { return y.priority == x.priority && y.modelRun.classes == x.modelRun.classes }); j != i {
				m.t.Fatalf("%s has a turn, which is neither the best nor the oldest of its kind: %s is better", name, best.name)
			}
		}
		m.waiting = slices.Delete(m.waiting, i, i+1)
		for _, c := range x.classes {
			m.used[c]++
		}
		m.turns++
		m.clock++
		m.place[x.modelRun] = m.clock
	}
	if best := m.best(); best != nil {
		m.t.Fatalf("%s waits, although there is room", best.name)
	}
}

// No attempt has a turn while a better one waits and fits, except for one in twenty; and none waits while it fits.
func TestRandomOrder(t *testing.T) {
	t.Parallel()
	for name, sets := range map[string][][]string{
		"one class":    {{}, {"step"}, {"mcp:x"}},
		"many classes": {{}, {"step"}, {"mcp:x"}, {"step", "mcp:x"}, {"step", "step:a"}},
	} {
		for seed := range uint64(20) {
			rng := rand.New(rand.NewPCG(seed, 0))
			capacity := 1 + rng.IntN(6)
			limits := []work.Limit{{Class: "step", Concurrent: 1 + rng.IntN(4)}, {Class: "step:a", Concurrent: 1 + rng.IntN(2)}, {Class: "mcp:x", Concurrent: 1 + rng.IntN(3)}}
			m := &model{t: t, b: newCapacityBench(capacity, limits...), limits: map[string]int{"": capacity}, used: map[string]int{}, place: map[modelRun]int{}}
			for _, l := range limits {
				m.limits[l.Class] = l.Concurrent
			}
			inFlight := map[string]func(){}
			classesOf := map[string][]string{}
			end := func() {
				names := slices.Sorted(maps.Keys(inFlight))
				name := names[rng.IntN(len(names))]
				for _, c := range classesOf[name] {
					m.used[c]--
				}
				inFlight[name]()
				delete(inFlight, name)
			}
			for i := 0; i < 2000 || len(inFlight) > 0; i++ {
				n := len(m.b.turns)
				if i < 2000 && (len(inFlight) == 0 || rng.IntN(100) < 52) {
					set := sets[rng.IntN(len(sets))]
					run := modelRun{fmt.Sprint("r", rng.IntN(8)), strings.Join(set, ","), rng.IntN(3)}
					x := &modelTicket{modelRun: run, name: fmt.Sprint(run.run, ".", i), classes: append(slices.Clone(set), "")}
					classesOf[x.name] = x.classes
					if release, ok := m.b.Reserve(set); ok {
						if len(set) > 0 {
							t.Fatalf("reserved a place of %s", set)
						}
						m.used[""]++
						inFlight[x.name] = release
					} else {
						if m.enter(x); len(set) == 0 && m.best() == x {
							t.Fatalf("no place reserved for %s, which has the next turn", x.name)
						}
						m.b.enter(t.Context(), x.name, run.priority, set...)
					}
				} else {
					end()
				}
				m.check()
				for _, name := range m.b.turns[n:] {
					inFlight[name] = m.b.done[name]
				}
				if free := max(0, capacity-m.used[""]-len(m.waiting)); m.b.Free() != free || m.b.InUse() != m.used[""] || m.b.Waiting() != len(m.waiting) {
					t.Fatalf("%d free, %d in use, %d wait; want %d, %d, %d", m.b.Free(), m.b.InUse(), m.b.Waiting(), free, m.used[""], len(m.waiting))
				}
			}
			if len(m.waiting) > 0 || m.byAge > m.turns/20 {
				t.Errorf("%s, seed %d: %d wait; %d of %d turns by age", name, seed, len(m.waiting), m.byAge, m.turns)
			}
			if seed < 3 {
				t.Logf("%s: %d turns, %d by age, %d may leave their place", name, m.turns, m.byAge, m.kept)
			}
		}
	}
}

// An attempt that needs room in two pools gets it although others keep each of them full in turn.
func TestAnAttemptOfTwoClassesIsNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(work.Limit{Class: "step", Concurrent: 1}, work.Limit{Class: "db", Concurrent: 1})
		defer b.end()
		var got atomic.Bool
		var others atomic.Int64
		other := func(run string, lasts, first time.Duration, classes ...string) {
			var again func()
			again = func() {
				if got.Load() || others.Load() > 1000 {
					return
				}
				b.Enter(&work.Ticket{Run: run, Classes: classes, Context: t.Context(), Left: func() {}, Turn: func(done func()) {
					others.Add(1)
					d := lasts
					if first > 0 {
						d, first = first, 0
					}
					time.AfterFunc(d, func() { again(); done() })
				}})
			}
			again()
		}
		for i := range 2 {
			other(fmt.Sprint("s", i), 10*time.Millisecond, 5*time.Millisecond, "step")
			other(fmt.Sprint("t", i), 10*time.Millisecond, 0, "tool_call", "db")
		}
		b.Enter(&work.Ticket{Run: "both", Classes: []string{"step", "db"}, Context: t.Context(), Left: func() {}, Turn: func(done func()) { got.Store(true); done() }})
		time.Sleep(time.Minute)
		synctest.Wait()
		if !got.Load() || others.Load() > 60 { // a twentieth turn in each of the two pools, and what is under way
			t.Errorf("it had its turn: %v, after %d others", got.Load(), others.Load())
		}
	})
}

// A rate far below one start a day is kept.
func TestStartsAYear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(work.Limit{Class: "step", PerSecond: 1e-11})
		defer b.end()
		b.enter(t.Context(), "a.0", 0, "step")
		b.enter(t.Context(), "b.0", 0, "step")
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if len(b.turns) != 1 {
			t.Errorf("turns %v", b.turns)
		}
	})
}

// Places are kept for an attempt of two classes only while it could use them: a class whose attempts last long does not idle another.
func TestNoPlaceIsKeptForALongWait(t *testing.T) {
	t.Parallel()
	for _, classes := range [][]string{{"agent", "step"}, {"step", "agent"}} {
		b := newBench(work.Limit{Class: "step", Concurrent: 1}, work.Limit{Class: "agent", Concurrent: 1})
		b.enter(t.Context(), "long.0", 0, "agent")
		b.enter(t.Context(), "first.0", 0, "step")
		b.enter(t.Context(), "both.0", 0, classes...)
		for i := range 100 {
			b.enter(t.Context(), fmt.Sprintf("step%d.0", i), 0, "step")
			b.endLast()
		}
		if n := len(b.turns); n != 102 {
			t.Errorf("%d turns while one of class agent lasts", n)
		}
		b.done["long.0"]()
		b.enter(t.Context(), "next.0", 0, "step")
		if next := b.endLast(); next != "both.0" {
			t.Errorf("the next turn was that of %s", next)
		}
	}
}

// Places are kept in the order of the classes: one of a later class is not idle while an earlier class is full.
func TestPlacesAreKeptInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(work.Limit{Class: "agent", Concurrent: 1}, work.Limit{Class: "step", Concurrent: 1})
	cycle := func(class string, n int) {
		t.Helper()
		for i := range n {
			name := fmt.Sprintf("%s%d.%d", class, len(b.turns), i)
			b.enter(t.Context(), name, 0, class)
			if next := b.endLast(); next != name {
				t.Fatalf("the turn after %d of class %s was that of %s, not of %s", i, class, next, name)
			}
		}
	}
	b.enter(t.Context(), "step.0", 0, "step")
	b.enter(t.Context(), "agent.0", 0, "agent")
	b.enter(t.Context(), "both.0", 0, "agent", "step")
	cycle("agent", 30)
	last := b.turns[len(b.turns)-1]
	b.enter(t.Context(), "step.1", 0, "step")
	b.done["step.0"]()
	cycle("step", 60) // both.0 is held from the twentieth on
	b.enter(t.Context(), "agent.1", 0, "agent")
	if b.done[last](); slices.Contains(b.turns, "agent.1") {
		t.Error("the place of class agent was not kept")
	}
	if next := b.endLast(); next != "both.0" {
		t.Errorf("the next turn was that of %s", next)
	}
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	b := newCapacityBench(3, work.Limit{Class: "step", Concurrent: 1})
	want := func(free, inUse, waiting int, freed bool) {
		t.Helper()
		got := false
		select {
		case <-b.Freed():
			got = true
		default:
		}
		if b.Free() != free || b.InUse() != inUse || b.Waiting() != waiting || got != freed {
			t.Errorf("%d free, %d in use, %d wait, %v; want %d, %d, %d, %v", b.Free(), b.InUse(), b.Waiting(), got, free, inUse, waiting, freed)
		}
	}
	reserve := func(want bool, classes ...string) func() {
		t.Helper()
		release, ok := b.Reserve(classes)
		if ok != want {
			t.Errorf("reserved for %v: %v", classes, ok)
		}
		return release
	}
	want(3, 0, 0, false)
	reserve(false, "step")
	b.enter(t.Context(), "a.0", 0, "step")
	b.enter(t.Context(), "b.0", 0, "step")
	want(1, 1, 1, false)
	release := reserve(true, "llm_call") // b waits for its class, not for this place
	want(0, 2, 1, false)
	b.enter(t.Context(), "c.0", 0, "llm_call")
	b.enter(t.Context(), "d.0", 0, "llm_call")
	b.enter(t.Context(), "e.0", 5)
	reserve(false, "llm_call")
	b.have(t, "a.0 c.0")
	want(0, 3, 3, false)
	release()
	b.have(t, "a.0 c.0 e.0")
	b.done["a.0"]()
	b.have(t, "a.0 c.0 e.0 b.0")
	b.done["c.0"]()
	b.have(t, "a.0 c.0 e.0 b.0 d.0")
	want(0, 3, 0, false)
	b.done["d.0"]()
	b.done["e.0"]()
	want(2, 1, 0, true)
	b.done["b.0"]()
	want(3, 0, 0, true)

	reserve(true)()
	reserve(true)
	b.Open()
	for i := range 5 {
		b.enter(t.Context(), fmt.Sprintf("f%d.0", i), 0, "step")
	}
	want(0, 6, 0, true)
	b.Close()
	reserve(false)
	b.done["f0.0"]()
	want(0, 5, 0, false)
}

func TestWithoutACapacity(t *testing.T) {
	t.Parallel()
	b := newBench(work.Limit{Class: "step", Concurrent: 1})
	if _, ok := b.Reserve([]string{"step"}); ok {
		t.Error("a place of a class was reserved")
	}
	release, ok := b.Reserve([]string{"llm_call"})
	if !ok {
		t.Fatal("no place")
	}
	release()
	b.enter(t.Context(), "a.0", 0, "llm_call")
	b.enter(t.Context(), "b.0", 0, "step")
	b.enter(t.Context(), "c.0", 0, "step")
	b.have(t, "a.0 b.0")
	if b.Free() != math.MaxInt || b.InUse() != 1 || b.Waiting() != 1 {
		t.Errorf("%d free, %d in use, %d wait", b.Free(), b.InUse(), b.Waiting())
	}
	b.drain()
	select {
	case <-b.Freed():
		t.Error("a place became free")
	default:
	}
}

// A waiting attempt that leaves makes its place free.
func TestLeavingFreesAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newCapacityBench(2, work.Limit{Class: "step", Concurrent: 1})
		ctx, cancel := context.WithCancel(t.Context())
		b.enter(t.Context(), "a.0", 0, "step")
		b.enter(ctx, "b.0", 0, "step")
		if b.Free() != 0 {
			t.Errorf("%d free", b.Free())
		}
		cancel()
		<-b.Freed()
		if b.Free() != 1 {
			t.Errorf("%d free", b.Free())
		}
	})
}

// A place is not reserved before an attempt whose next start has become free, even if the queue has not been woken yet.
func TestAReservationWaitsForARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := work.NewQueue(work.Env{Go: func(func()) {}, Context: t.Context()}, []work.Limit{{Class: "step", PerSecond: 1}}, 2)
		for range 2 {
			q.Enter(&work.Ticket{Run: "a", Classes: []string{"step"}, Context: t.Context(), Turn: func(done func()) { done() }, Left: func() {}})
		}
		release, ok := q.Reserve(nil)
		if !ok || q.Waiting() != 1 {
			t.Fatalf("reserved %v, %d wait", ok, q.Waiting())
		}
		time.Sleep(time.Second)
		if _, ok := q.Reserve(nil); ok {
			t.Error("reserved a place that the waiting attempt can use")
		}
		if release(); q.Waiting() != 0 {
			t.Error("the attempt still waits")
		}
	})
}

func TestOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newCapacityBench(1, work.Limit{Class: "step", Concurrent: 1})
		for _, name := range []string{"a.0", "b.0", "b.1", "c.0"} {
			b.enter(t.Context(), name, 0, "step")
		}
		b.enter(t.Context(), "b.2", 0)
		time.Sleep(time.Second)
		b.enter(t.Context(), "d.0", 5)
		b.enter(t.Context(), "c.1", 0)
		time.Sleep(time.Second)
		b.enter(t.Context(), "e.0", 0)
		want := func(age time.Duration, want string) {
			t.Helper()
			if got := strings.Join(b.Overdue(time.Now().Add(-age)), " "); got != want {
				t.Errorf("overdue after %s: %q, want %q", age, got, want)
			}
		}
		want(time.Hour, "")
		want(2*time.Second, "")
		want(1500*time.Millisecond, "b c")
		want(time.Millisecond, "d b c")
		want(-time.Millisecond, "d b c e")
		b.done["a.0"]() // d has its turn
		b.done["d.0"]() // and b
		want(1500*time.Millisecond, "c b")
	})
}

func BenchmarkReserve(b *testing.B) {
	for _, capacity := range []int{0, 100} {
		for _, waits := range []int{0, 100} {
			b.Run(fmt.Sprintf("capacity=%d/waiting=%d", capacity, waits), func(b *testing.B) {
				q := newCapacityBench(capacity, work.Limit{Class: "step", Concurrent: 1})
				for i := range waits + 1 {
					q.enter(b.Context(), fmt.Sprint(i), 0, "step")
				}
				classes := []string{"llm_call", "llm:http://127.0.0.1/v1"}
				b.ReportAllocs()
				for b.Loop() {
					release, ok := q.Reserve(classes)
					if !ok {
						b.Fatal("no place")
					}
					release()
				}
			})
		}
	}
}

func BenchmarkTurns(b *testing.B) {
	for _, waits := range []int{0, 10, 10000} {
		b.Run(fmt.Sprint("waiting=", waits), func(b *testing.B) {
			q := work.NewQueue(work.Env{}, []work.Limit{{Class: "step", Concurrent: 1}}, 100)
			dones := make(chan func(), 1)
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			enter := func(run int) {
				q.Enter(&work.Ticket{
					Run: fmt.Sprint("r", run%100), Priority: run % 3, Classes: []string{"step"}, Context: ctx,
					Turn: func(done func()) { dones <- done }, Left: func() {},
				})
			}
			for i := range waits {
				enter(i)
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				enter(i)
				(<-dones)()
				i++
			}
			q.Close()
		})
	}
}
