package work_test

import (
	"context"
	"fmt"
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

func newBench(limits ...work.Limit) *bench {
	ctx, cancel := context.WithCancel(context.Background())
	b := &bench{done: map[string]func(){}, end: cancel}
	b.Queue = work.NewQueue(work.Env{Go: func(f func()) { go f() }, Context: ctx}, limits)
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

// A run with many attempts does not hold up one with a few, whatever its priority.
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
	if got, want := b.drain(), "a.0 c.0 a.1 b.0 c.1 a.2 b.1 a.3 a.4"; got != want {
		t.Errorf("turns %s, want %s", got, want)
	}
}

// Who comes in all the time does not keep a run from its second turn.
func TestNewcomersDoNotStarveARun(t *testing.T) {
	t.Parallel()
	b := newBench(work.Limit{Class: "step", Concurrent: 1})
	b.enter(t.Context(), "old.0", 0, "step")
	b.enter(t.Context(), "old.1", 0, "step")
	b.enter(t.Context(), "old.2", 0, "step")
	for i := range 20 {
		b.enter(t.Context(), fmt.Sprintf("new%d.0", i), 100, "step")
		b.enter(t.Context(), fmt.Sprintf("new%d.0", i+100), 100, "step")
		b.done[b.turns[i]]()
	}
	if i := slices.Index(b.turns, "old.2"); i < 0 || i > 10 {
		t.Errorf("the third turn of the run came as number %d: %s", i, b.turns)
	}
}

// A run of a higher priority has the next free turn, however many others wait, whatever their rounds and classes.
func TestPriorityHasTheNextFreeTurn(t *testing.T) {
	t.Parallel()
	for _, classes := range [][]string{{"step"}, {"step", "step:charge"}} {
		b := newBench(work.Limit{Class: "step", Concurrent: 1}, work.Limit{Class: "step:charge", Concurrent: 1})
		for i := range 1000 {
			b.enter(t.Context(), fmt.Sprintf("low%d.0", i), 0, "step")
			b.enter(t.Context(), "many."+fmt.Sprint(i), 0, "step")
		}
		end := func() { b.done[b.turns[len(b.turns)-1]]() }
		for range 100 { // into the first round
			end()
		}
		// A run whose nodes follow each other has all of its turns at once.
		for i := range 3 {
			name := fmt.Sprintf("urgent.%d", i)
			b.enter(t.Context(), name, 100, classes...)
			if end(); b.turns[len(b.turns)-1] != name {
				t.Errorf("%s: the next turn was that of %s", name, b.turns[len(b.turns)-1])
			}
		}
		if end(); !strings.HasPrefix(b.turns[len(b.turns)-1], "low") && !strings.HasPrefix(b.turns[len(b.turns)-1], "many") {
			t.Errorf("nobody else had a turn after three of high priority: %s", b.turns[len(b.turns)-1])
		}
		end()
		// One with branches has every tenth, or three of four where nobody else waits for the same room.
		for i := range 4 {
			b.enter(t.Context(), fmt.Sprintf("wide.%d", i), 50, classes...)
		}
		at := len(b.turns)
		b.drain()
		var wide []int
		for i, name := range b.turns[at:] {
			if strings.HasPrefix(name, "wide") {
				wide = append(wide, i)
			}
		}
		want := []int{0, 10, 20, 30}
		if len(classes) > 1 {
			want = []int{0, 1, 2, 4}
		}
		if !slices.Equal(wide, want) {
			t.Errorf("the branches had the turns %d, want %d", wide, want)
		}
		if n := len(b.turns); n != 2007 || b.Waiting() != 0 {
			t.Errorf("%d turns, %d wait", n, b.Waiting())
		}
	}
}

// Who comes in all the time with a high priority does not starve an attempt that needs other room, too.
func TestPriorityDoesNotStarveOtherClasses(t *testing.T) {
	t.Parallel()
	b := newBench(work.Limit{Class: "step", Concurrent: 1}, work.Limit{Class: "step:charge", Concurrent: 1})
	b.enter(t.Context(), "first.0", 0, "step")
	b.enter(t.Context(), "old.0", 0, "step", "step:charge")
	b.enter(t.Context(), "old.1", 0, "step", "step:charge")
	for i := range 20 {
		b.enter(t.Context(), fmt.Sprintf("new%d.0", i), 100, "step")
		b.enter(t.Context(), fmt.Sprintf("new%d.1", i), 100, "step")
		b.done[b.turns[i]]()
	}
	if i := slices.Index(b.turns, "old.1"); i < 0 || i > 10 {
		t.Errorf("the second turn of the run came as number %d: %s", i, b.turns)
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

// Under a random load no limit is passed, nothing is lost and nothing is left over.
func TestRandomLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		limits := []work.Limit{{Class: "step", Concurrent: 5}, {Class: "step:a", Concurrent: 2}, {Class: "mcp:x", Concurrent: 3, PerSecond: 50}}
		b := newBench(limits...)
		defer b.end()
		sets := [][]string{{"step"}, {"step", "step:a"}, {"tool_call", "mcp:x"}, {"step", "mcp:x"}, {"free"}}
		used, over, ended := map[string]int{}, 0, 0
		var mu sync.Mutex
		const attempts = 2000
		for i := range attempts {
			ctx, cancel := context.WithCancel(t.Context())
			set, lasts := sets[rng.IntN(len(sets))], time.Duration(rng.IntN(30))*time.Millisecond
			b.Enter(&work.Ticket{
				Run: fmt.Sprint(rng.IntN(50)), Priority: rng.IntN(3), Classes: set, Context: ctx,
				Turn: func(done func()) {
					mu.Lock()
					defer mu.Unlock()
					for _, c := range set {
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
						for _, c := range set {
							used[c]--
						}
						mu.Unlock()
						done()
						cancel()
					})
				},
				Left: func() { mu.Lock(); defer mu.Unlock(); ended++ },
			})
			if i%7 == 0 {
				time.AfterFunc(time.Duration(rng.IntN(500))*time.Millisecond, cancel)
			}
			time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if over > 0 || ended != attempts || b.Waiting() > 0 {
			t.Errorf("%d over a limit, %d of %d ended, %d wait", over, ended, attempts, b.Waiting())
		}
	})
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
		if !got.Load() || others.Load() > 20 {
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
