package historytest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// limiter returns the store as a history.Limiter, and skips the rest of the test if it is not one.
func limiter(t *testing.T, s history.Store) history.Limiter {
	t.Helper()
	l, ok := history.As[history.Limiter](s)
	if !ok {
		t.Skipf("%T keeps no shared limits", s)
	}
	return l
}

// setLimits sets limits and makes processes live for an hour.
func setLimits(t *testing.T, s history.Store, limits []history.SharedLimit, processes ...string) {
	t.Helper()
	must(t, limiter(t, s).SetLimits(t.Context(), limits...))
	for _, p := range processes {
		must(t, s.Renew(t.Context(), p, time.Hour))
	}
}

// grant answers one want.
func grant(t *testing.T, s history.Store, process string, w history.Want) history.Granted {
	t.Helper()
	granted := got[[]history.Granted](t)(limiter(t, s).Grant(t.Context(), process, w))
	if len(granted) != 1 {
		t.Fatalf("one want of %s has %d answers", process, len(granted))
	}
	return granted[0]
}

// wantSlots lets a process want a number of slots of class "c", and use some.
func wantSlots(t *testing.T, s history.Store, process string, slots, used, want int) history.Granted {
	t.Helper()
	g := grant(t, s, process, history.Want{Class: "c", Slots: slots, Used: used})
	if g.Slots != want {
		t.Errorf("%s wants %d slots, uses %d and gets %d, want %d", process, slots, used, g.Slots, want)
	}
	return g
}

// wantStarts lets a process reserve starts of class "c"; first is in milliseconds after Begin.
func wantStarts(t *testing.T, s history.Store, process string, starts, want int, first float64) history.Granted {
	t.Helper()
	g := grant(t, s, process, history.Want{Class: "c", Starts: starts})
	at := Begin.Add(time.Duration(first * float64(time.Millisecond)))
	if g.Starts != want || want > 0 && !g.First.Equal(at) {
		t.Errorf("%s wants %d starts and gets %d from %v on, want %d from %v on", process, starts, g.Starts, g.First.Sub(Begin), want, at.Sub(Begin))
	}
	return g
}

// wantShares compares the shares of class "c", in the notation "p 3 of 5, 0 starts".
func wantShares(t *testing.T, s history.Store, want ...string) {
	t.Helper()
	var shares []string
	for _, u := range got[[]history.LimitUse](t)(limiter(t, s).SharedLimits(t.Context())) {
		for _, share := range u.Shares {
			if u.Class == "c" {
				shares = append(shares, fmt.Sprintf("%s %d of %d, %d starts", share.Process, share.Slots, share.Wanted, share.Starts))
			}
		}
	}
	if !slices.Equal(shares, want) {
		t.Errorf("the shares are %q, want %q", shares, want)
	}
}

// sharedLimits: limits are set, changed, listed and removed by their class.
func sharedLimits(t *testing.T, s history.Store, _ *clock) {
	ctx, l := t.Context(), limiter(t, s)
	want := func(want ...history.SharedLimit) {
		t.Helper()
		var limits []history.SharedLimit
		for _, u := range got[[]history.LimitUse](t)(l.SharedLimits(ctx)) {
			limits = append(limits, u.SharedLimit)
		}
		if !slices.Equal(limits, want) {
			t.Errorf("the limits are %v, want %v", limits, want)
		}
	}
	want()
	third := history.SharedLimit{Class: "step:é☃", PerSecond: 1. / 3}
	first, second := history.SharedLimit{Class: "B", Concurrent: 1}, history.SharedLimit{Class: "llm_call", Concurrent: 20, PerSecond: 150}
	must(t, l.SetLimits(ctx, third, second, first))
	want(first, second, third)
	must(t, l.SetLimits(ctx, history.SharedLimit{Class: "llm_call", PerSecond: 2}, history.SharedLimit{Class: "B"}, history.SharedLimit{Class: "none"}))
	want(history.SharedLimit{Class: "llm_call", PerSecond: 2}, third)
	must(t, l.SetLimits(ctx))
	for name, faulty := range map[string][]history.SharedLimit{
		"no class":            {{Concurrent: 1}},
		"a blank class":       {{Class: " ", Concurrent: 1}},
		"a class not in UTF8": {{Class: "\xff", Concurrent: 1}},
		"a control character": {{Class: "a\x00b", Concurrent: 1}},
		"a long class":        {{Class: string(make([]byte, history.MaxClass+1)), Concurrent: 1}},
		"fewer than none":     {{Class: "llm_call", Concurrent: -1}},
		"too many":            {{Class: "llm_call", Concurrent: history.MaxConcurrent + 1}},
		"a negative rate":     {{Class: "llm_call", PerSecond: -1}},
		"no number":           {{Class: "llm_call", PerSecond: math.NaN()}},
		"no end":              {{Class: "llm_call", PerSecond: math.Inf(1)}},
		"a rate too low":      {{Class: "llm_call", PerSecond: history.MinPerSecond / 2}},
		"two of a class":      {{Class: "x", Concurrent: 1}, {Class: "x", PerSecond: 1}},
		"a second one":        {{Class: "x", Concurrent: 1}, {Class: "", PerSecond: 1}},
	} {
		if err := l.SetLimits(ctx, faulty...); err == nil {
			t.Errorf("limits with %s are set", name)
		} else {
			wantCode(t, err, problem.UsageError)
		}
	}
	want(history.SharedLimit{Class: "llm_call", PerSecond: 2}, third)
	for name, faulty := range map[string]history.Want{
		"no class":              {Slots: 1},
		"more used than wanted": {Class: "x", Slots: 1, Used: 2},
		"fewer used than none":  {Class: "x", Slots: 1, Used: -1},
		"fewer starts":          {Class: "x", Starts: -1},
		"fewer unused":          {Class: "x", Unused: -1},
	} {
		_, err := l.Grant(ctx, "p", faulty)
		if err == nil {
			t.Errorf("a want with %s is granted", name)
		}
		wantCode(t, err, problem.Internal)
	}
	wantRefusal(t, problem.Internal)(l.Grant(ctx, "", history.Want{Class: "x", Slots: 1}))
	wantRefusal(t, problem.Internal)(l.Grant(ctx, "p", history.Want{Class: "x"}, history.Want{Class: "x"}))
}

// sharedWithoutLimit: a class without a limit has no bounds, and keeps nothing.
func sharedWithoutLimit(t *testing.T, s history.Store, _ *clock) {
	setLimits(t, s, []history.SharedLimit{{Class: "c", PerSecond: 10}, {Class: "d", Concurrent: 2}}, "p")
	granted := got[[]history.Granted](t)(limiter(t, s).Grant(t.Context(), "p", history.Want{Class: "none", Slots: 1000, Starts: 1000},
		history.Want{Class: "d", Slots: 5, Used: 1, Starts: 7}, history.Want{Class: "c", Slots: 9, Starts: 3}))
	if len(granted) != 3 {
		t.Fatalf("got %+v", granted)
	}
	if g := granted[0]; g.Limit.Bounds() || g.Slots != 1000 || g.Starts != 1000 {
		t.Errorf("without a limit: %+v", g)
	}
	if g := granted[1]; g.Limit != (history.SharedLimit{Class: "d", Concurrent: 2}) || g.Slots != 2 || g.Starts != 7 {
		t.Errorf("with two slots: %+v", g)
	}
	g, next := granted[2], Begin.Add(100*time.Millisecond)
	if g.Limit.PerSecond != 10 || g.Slots != 9 || g.Starts != 1 || !g.First.Equal(Begin) || !g.Now.Equal(Begin) || !g.Next.Equal(next) {
		t.Errorf("with ten starts a second: %+v", g)
	}
	wantShares(t, s, "p 0 of 0, 2 starts")
	setLimits(t, s, []history.SharedLimit{{Class: "c"}, {Class: "d"}})
	setLimits(t, s, []history.SharedLimit{{Class: "c", Concurrent: 1}})
	wantShares(t, s) // what was held of the removed limit is forgotten
	wantSlots(t, s, "p", 1, 0, 1)
}

// slots: live processes together hold no more than the limit, unless it is lowered.
func slots(t *testing.T, s history.Store, _ *clock) {
	setLimits(t, s, []history.SharedLimit{{Class: "c", Concurrent: 20}}, "p", "q", "r")
	wantSlots(t, s, "p", 15, 0, 15)
	wantSlots(t, s, "p", 15, 15, 15) // again
	wantShares(t, s, "p 15 of 15, 0 starts")
	if g := wantSlots(t, s, "q", 15, 0, 5); g.Others != 15 {
		t.Errorf("others hold %d", g.Others)
	}
	wantShares(t, s, "p 15 of 15, 0 starts", "q 5 of 15, 0 starts")
	uses := got[[]history.LimitUse](t)(limiter(t, s).SharedLimits(t.Context()))
	uses[0].Shares[0].Slots = 1 // what was got can be changed
	wantShares(t, s, "p 15 of 15, 0 starts", "q 5 of 15, 0 starts")
	wantSlots(t, s, "p", 12, 12, 12)
	wantSlots(t, s, "q", 15, 5, 8)
	wantSlots(t, s, "q", 0, 0, 0)
	wantSlots(t, s, "r", 3, 0, 3)
	wantShares(t, s, "p 12 of 12, 0 starts", "r 3 of 3, 0 starts")
	setLimits(t, s, []history.SharedLimit{{Class: "c", Concurrent: 10}})
	wantSlots(t, s, "r", 4, 3, 3) // those that attempts use stay
	wantSlots(t, s, "p", 12, 9, 9)
	wantSlots(t, s, "p", 12, 2, 6) // the other one is left to r
	wantShares(t, s, "p 6 of 12, 0 starts", "r 3 of 4, 0 starts")
	wantSlots(t, s, "r", 4, 3, 4)
	setLimits(t, s, []history.SharedLimit{{Class: "c", Concurrent: 12}})
	wantSlots(t, s, "p", 12, 2, 8)
}

// slotsOfTheDead: slots count while the lease of their process lasts.
func slotsOfTheDead(t *testing.T, s history.Store, c *clock) {
	setLimits(t, s, []history.SharedLimit{{Class: "c", Concurrent: 20}}, "q")
	must(t, s.Renew(t.Context(), "p", 10*time.Second))
	wantSlots(t, s, "p", 20, 20, 20)
	c.pass(10*time.Second - time.Millisecond)
	wantSlots(t, s, "q", 5, 0, 0)
	wantShares(t, s, "p 20 of 20, 0 starts", "q 0 of 5, 0 starts")
	c.pass(time.Millisecond)
	wantShares(t, s, "q 0 of 5, 0 starts")
	wantSlots(t, s, "p", 20, 0, 0) // without a lease it gets nothing
	wantSlots(t, s, "q", 5, 0, 5)
	wantSlots(t, s, "unknown", 5, 0, 0)
	must(t, s.Renew(t.Context(), "p", time.Hour)) // was only paused, but others have its slots now
	wantSlots(t, s, "p", 20, 18, 18)              // its attempts go on
	wantSlots(t, s, "q", 6, 5, 5)
	must(t, s.Release(t.Context(), "p"))
	wantSlots(t, s, "q", 20, 5, 20)
	must(t, s.Renew(t.Context(), "p", time.Hour))
	wantShares(t, s, "q 20 of 20, 0 starts")
}

// fairShares: a process that is short of slots gets its fair share as others return slots, the one that has waited longest first.
func fairShares(t *testing.T, s history.Store, c *clock) {
	setLimits(t, s, []history.SharedLimit{{Class: "c", Concurrent: 20}}, "p", "q", "r")
	keep := func(process string, want int) {
		t.Helper()
		uses := got[[]history.LimitUse](t)(limiter(t, s).SharedLimits(t.Context()))
		if n := uses[0].Keep(process); n != want {
			t.Errorf("%s should keep %d slots, want %d", process, n, want)
		}
	}
	wantSlots(t, s, "p", 100, 0, 20)
	keep("p", 20) // nobody else wants any
	c.pass(time.Second)
	wantSlots(t, s, "q", 100, 0, 0)
	keep("p", 10)
	wantSlots(t, s, "p", 100, 17, 17) // three attempts have ended, and their slots are left to q
	wantSlots(t, s, "q", 100, 0, 3)
	wantSlots(t, s, "p", 100, 5, 10)
	keep("p", 10)
	c.pass(time.Second)
	wantSlots(t, s, "r", 7, 0, 4) // of seven free ones, three are left to q, which has waited for longer
	wantSlots(t, s, "q", 100, 3, 6)
	keep("p", 6)
	keep("q", 6)
	wantSlots(t, s, "p", 100, 9, 9)
	wantSlots(t, s, "r", 7, 4, 5)
	wantSlots(t, s, "p", 100, 7, 7)
	wantSlots(t, s, "r", 7, 5, 7)
	keep("p", 7) // twenty slots are six or seven for each
	keep("q", 6)
	wantSlots(t, s, "r", 2, 2, 2) // wants less than its share
	wantSlots(t, s, "q", 100, 6, 9)
	wantSlots(t, s, "p", 100, 7, 9)
	keep("q", 9)
	keep("p", 9)
	wantSlots(t, s, "r", 0, 0, 0)
	wantSlots(t, s, "p", 100, 8, 10)

	setLimits(t, s, []history.SharedLimit{{Class: "c"}})
	setLimits(t, s, []history.SharedLimit{{Class: "c", Concurrent: 1}}) // they take turns
	wantSlots(t, s, "p", 2, 0, 1)
	c.pass(time.Second)
	wantSlots(t, s, "q", 2, 0, 0)
	c.pass(time.Second)
	wantSlots(t, s, "r", 2, 0, 0)
	keep("p", 0)
	wantSlots(t, s, "p", 2, 1, 1)
	c.pass(time.Second)
	wantSlots(t, s, "p", 2, 0, 0)
	wantSlots(t, s, "r", 2, 0, 0)
	wantSlots(t, s, "q", 2, 0, 1)
	c.pass(time.Second)
	wantSlots(t, s, "q", 2, 0, 0)
	wantSlots(t, s, "p", 2, 0, 0)
	wantSlots(t, s, "r", 0, 0, 0) // wants none any more
	wantSlots(t, s, "p", 2, 0, 1)
}

// starts: start times follow one another at the rate, at most StartsAhead ahead, whoever asks.
func starts(t *testing.T, s history.Store, c *clock) {
	setLimits(t, s, []history.SharedLimit{{Class: "c", PerSecond: 200}}, "p", "q")
	wantStarts(t, s, "p", 3, 3, 0)
	wantStarts(t, s, "q", 100, 8, 15) // up to 50 ms
	wantShares(t, s, "q 0 of 0, 92 starts")
	if g := wantStarts(t, s, "p", 1, 0, 0); g.Next.Sub(Begin) != 55*time.Millisecond || !g.Now.Equal(Begin) {
		t.Errorf("the next start is at %v", g.Next.Sub(Begin))
	}
	c.pass(5 * time.Millisecond)
	wantStarts(t, s, "p", 9, 1, 55)
	c.pass(time.Second) // no starts are saved up
	wantStarts(t, s, "p", 2, 2, 1005)
	wantStarts(t, s, "unknown", 2, 0, 0)
	wantStarts(t, s, "q", 0, 0, 0)
	wantShares(t, s)

	setLimits(t, s, []history.SharedLimit{{Class: "c", PerSecond: 1}}) // from the next start on
	wantStarts(t, s, "q", 2, 1, 1015)
	c.pass(1009 * time.Millisecond)
	wantStarts(t, s, "q", 2, 1, 2015)
	wantStarts(t, s, "p", 2, 0, 0)
	setLimits(t, s, []history.SharedLimit{{Class: "c", PerSecond: 100}}) // a start far ahead was for a lower rate
	wantStarts(t, s, "p", 1, 0, 0)
	c.pass(10 * time.Millisecond)
	wantStarts(t, s, "p", 1, 1, 2074)
}

// unusedStarts: the last start times that were reserved can be returned.
func unusedStarts(t *testing.T, s history.Store, _ *clock) {
	setLimits(t, s, []history.SharedLimit{{Class: "c", PerSecond: 150}}, "p", "q")
	g := wantStarts(t, s, "p", 5, 5, 0)
	step := g.Limit.Step()
	if step != 6666667 {
		t.Errorf("the time between two starts is %v", step)
	}
	back := history.Want{Class: "c", Unused: 2, First: g.First.Add(3 * step)}
	grant(t, s, "p", back)
	again := grant(t, s, "q", history.Want{Class: "c", Starts: 1})
	if again.Starts != 1 || !again.First.Equal(back.First) {
		t.Errorf("a returned start is granted as %+v", again)
	}
	back = history.Want{Class: "c", Unused: 1, First: g.First.Add(2 * step)} // not the last one
	grant(t, s, "p", back)
	if next := grant(t, s, "q", history.Want{Class: "c", Starts: 1}); !next.First.Equal(again.First.Add(step)) {
		t.Errorf("a start time is granted twice: %v, and %v after it", next.First, again.First)
	}
}

// startRate: in any window there are no more starts than the rate allows, and those of StartsAhead.
func startRate(t *testing.T, s history.Store, c *clock) {
	const rate = 150
	processes := []string{"p", "q", "r"}
	setLimits(t, s, []history.SharedLimit{{Class: "c", PerSecond: rate}}, processes...)
	random := rand.New(rand.NewPCG(1, 2))
	var all []time.Time
	for passed := time.Duration(0); passed < 3*time.Second; {
		g := grant(t, s, processes[random.IntN(3)], history.Want{Class: "c", Starts: random.IntN(9)})
		if ahead := g.First.Sub(g.Now) + time.Duration(max(0, g.Starts-1))*g.Limit.Step(); g.Starts > 0 && ahead > history.StartsAhead {
			t.Errorf("a start is reserved %v ahead", ahead)
		}
		for i := range g.Starts {
			all = append(all, g.First.Add(time.Duration(i)*g.Limit.Step()))
		}
		pause := time.Duration(random.IntN(20)) * time.Millisecond
		c.pass(pause)
		passed += pause
	}
	if !slices.IsSortedFunc(all, time.Time.Compare) || len(all) < 3*rate*9/10 {
		t.Errorf("%d starts, sorted: %t", len(all), slices.IsSortedFunc(all, time.Time.Compare))
	}
	for i := range all {
		for _, window := range []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second} {
			n := 0
			for n < len(all)-i && all[i+n].Sub(all[i]) < window {
				n++
			}
			if most := int(math.Ceil(rate * window.Seconds())); n > most {
				t.Errorf("%d starts within %v, want at most %d", n, window, most)
			}
		}
	}
}

// grantsAtOnce: processes that ask at the same time do not get more than there is.
func grantsAtOnce(t *testing.T, s history.Store) {
	const limit, rate, processes, rounds = 20, 100, 8, 10
	l := limiter(t, s)
	setLimits(t, s, []history.SharedLimit{{Class: "c", Concurrent: limit, PerSecond: rate}, {Class: "b", Concurrent: 3}})
	var mu sync.Mutex
	given, starts := map[string]int{}, map[int64]bool{}
	var wg sync.WaitGroup
	for i := range processes {
		name := fmt.Sprintf("p%d", i)
		must(t, s.Renew(t.Context(), name, time.Hour))
		wg.Go(func() {
			held := 0
			for round := range rounds {
				wants := []history.Want{{Class: "c", Slots: held + round%4, Used: held, Starts: 2}, {Class: "b", Slots: 1}}
				if i%2 == 0 {
					slices.Reverse(wants) // the order of the classes makes no deadlock
				}
				granted, err := l.Grant(t.Context(), name, wants...)
				if err != nil {
					t.Error(err)
					return
				}
				for k := range granted {
					if g := &granted[k]; wants[k].Class == "c" {
						held = g.Slots
						mu.Lock()
						given[name] = held
						for n := range g.Starts {
							at := g.First.Add(time.Duration(n) * g.Limit.Step()).UnixNano()
							if starts[at] {
								t.Errorf("the start at %d is granted twice", at)
							}
							starts[at] = true
						}
						mu.Unlock()
					}
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range given {
		total += n
	}
	uses := got[[]history.LimitUse](t)(l.SharedLimits(t.Context()))
	if total > limit || uses[1].Slots() != total || total < limit-processes {
		t.Errorf("%d of %d slots are held, and the store says %d", total, limit, uses[1].Slots())
	}
}
