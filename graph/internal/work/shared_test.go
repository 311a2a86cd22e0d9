package work_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/history"
)

// sharedBench is a bench with the shared limits of a store, whose answers the test gives.
type sharedBench struct {
	*bench
	t    *testing.T
	live bool // the process has a lease
}

func newSharedBench(t *testing.T, capacity int, limits []work.Limit, shared ...history.SharedLimit) *sharedBench {
	b := &sharedBench{newCapacityBench(capacity, limits...), t, true}
	t.Cleanup(b.end)
	b.set(shared...)
	return b
}

// finish ends an attempt.
func (b *sharedBench) finish(name string) {
	b.mu.Lock()
	done := b.done[name]
	b.mu.Unlock()
	done()
}

// set replaces the shared limits; no process holds a slot of them.
func (b *sharedBench) set(limits ...history.SharedLimit) {
	uses := make([]history.LimitUse, len(limits))
	for i, l := range limits {
		uses[i].SharedLimit = l
	}
	b.SetShared(uses, "p", func() bool { return b.live })
}

// look replaces the shared limits by one of class "c" of which this process holds slots and another process others, and lacks some.
func (b *sharedBench) look(concurrent, slots, others, lacking int) {
	u := history.LimitUse{SharedLimit: history.SharedLimit{Class: "c", Concurrent: concurrent}, Shares: []history.Share{
		{Process: "p", Slots: slots, Wanted: max(slots, 1)}, {Process: "q", Slots: others, Wanted: others + lacking},
	}}
	b.SetShared([]history.LimitUse{u}, "p", func() bool { return b.live })
}

// wantDemands compares the demands in the notation "c: 0 to 2 slots, 1 used, 3 starts".
func (b *sharedBench) wantDemands(want ...string) []work.Demand {
	b.t.Helper()
	demands, _ := b.Demands(time.Now())
	var got []string
	for _, d := range demands {
		text := fmt.Sprintf("%s: %d to %d slots, %d used, %d starts", d.Class, d.Held, d.Slots, d.Used, d.Starts)
		if d.Free {
			text += ", free"
		}
		if d.Unused > 0 {
			text += fmt.Sprintf(", %d unused", d.Unused)
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("the demands are %q, want %q", got, want)
	}
	return demands
}

// granted answers with slots and starts, the first of which is after a time.
func (b *sharedBench) granted(l history.SharedLimit, slots, starts int, first time.Duration) {
	now := time.Now()
	b.Granted(l.Class, &history.Granted{Limit: l, Slots: slots, Starts: starts, First: now.Add(first), Next: now, Now: now}, now)
}

// TestAttemptsWaitForSharedSlots: attempts begin in the slots that the process holds, which it keeps until two looks at the limits after their use.
func TestAttemptsWaitForSharedSlots(t *testing.T) {
	t.Parallel()
	limit := history.SharedLimit{Class: "c", Concurrent: 5}
	b := newSharedBench(t, 4, nil, limit)
	b.wantDemands()
	for i := range 6 {
		b.enter(t.Context(), fmt.Sprintf("r%d", i), 0, "c")
	}
	b.enter(t.Context(), "other", 0, "d") // passes them, since they take no capacity
	b.have(t, "other")
	b.wantDemands("c: 0 to 3 slots, 0 used, 0 starts") // no more than it has capacity for
	b.granted(limit, 2, 0, 0)
	b.have(t, "other r0 r1")
	b.wantDemands("c: 2 to 3 slots, 2 used, 0 starts")
	b.finish("r0")
	b.have(t, "other r0 r1 r2") // without a question
	b.live = false
	b.finish("r1")
	b.have(t, "other r0 r1 r2") // the lease has ended: its slots may belong to others
	b.live = true
	b.granted(limit, 3, 0, 0)
	b.have(t, "other r0 r1 r2 r3 r4")
	b.LoseShares()
	b.finish("r2")
	b.have(t, "other r0 r1 r2 r3 r4")
	b.wantDemands("c: 0 to 3 slots, 2 used, 0 starts, free")
	b.granted(limit, 3, 0, 0)
	b.have(t, "other r0 r1 r2 r3 r4 r5")
	for _, name := range []string{"r3", "r4", "r5"} {
		b.finish(name)
	}
	b.wantDemands()
	b.set(limit)
	b.wantDemands()
	b.set(limit)
	b.wantDemands("c: 3 to 0 slots, 0 used, 0 starts")
}

// TestSlotsAreReturned: a process with more than its fair share returns slots as its attempts end.
func TestSlotsAreReturned(t *testing.T) {
	t.Parallel()
	limit := history.SharedLimit{Class: "c", Concurrent: 6}
	b := newSharedBench(t, 0, nil, limit)
	for i := range 9 {
		b.enter(t.Context(), fmt.Sprintf("r%d", i), 0, "c")
	}
	b.granted(limit, 6, 0, 0)
	b.SetShared([]history.LimitUse{{SharedLimit: limit, Shares: []history.Share{{Process: "p", Slots: 6, Wanted: 6}, {Process: "q", Wanted: 9}}}}, "p",
		func() bool { return true })
	b.wantDemands()
	b.finish("r0")
	b.finish("r1")
	b.have(t, "r0 r1 r2 r3 r4 r5") // slots three to five are for the other process
	b.wantDemands("c: 6 to 6 slots, 4 used, 0 starts, free")
	b.granted(limit, 4, 0, 0)
	b.finish("r2")
	b.wantDemands("c: 4 to 6 slots, 3 used, 0 starts, free")
	b.granted(limit, 3, 0, 0)
	b.finish("r3")
	b.have(t, "r0 r1 r2 r3 r4 r5 r6")
	b.look(6, 3, 3, 0)
	b.finish("r4")
	b.have(t, "r0 r1 r2 r3 r4 r5 r6 r7")
}

// TestAWantThatHasEndedIsWithdrawn: if the attempts that waited for a slot are gone, the store learns that the process wants none. Else
// it would keep one free for it, although attempts of other processes wait.
func TestAWantThatHasEndedIsWithdrawn(t *testing.T) {
	t.Parallel()
	limit := history.SharedLimit{Class: "c", Concurrent: 1}
	b := newSharedBench(t, 0, nil, limit)
	b.look(1, 0, 1, 0)
	b.wantDemands("c: 0 to 0 slots, 0 used, 0 starts, free")
	b.granted(limit, 0, 0, 0)
	b.wantDemands()
}

// TestAttemptsBeginAtReservedTimes: each attempt begins at a start time that the process has reserved, or soon after it. Meanwhile it has no place.
func TestAttemptsBeginAtReservedTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := history.SharedLimit{Class: "c", PerSecond: 100}
		b := newSharedBench(t, 3, nil, limit)
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		for i := range 3 {
			b.enter(t.Context(), fmt.Sprintf("r%d", i), 0, "c")
		}
		b.wantDemands("c: 0 to 0 slots, 0 used, 3 starts")
		b.granted(limit, 0, 2, 20*time.Millisecond)
		b.wantDemands("c: 0 to 0 slots, 0 used, 1 starts")
		b.enter(t.Context(), "other", 0, "d")
		b.have(t, "other")
		pass(20*time.Millisecond - 1)
		b.have(t, "other")
		pass(1)
		b.have(t, "other r0")
		b.enter(t.Context(), "another", 0, "d")
		pass(10 * time.Millisecond)
		b.have(t, "other r0 another") // its capacity is used
		b.finish("other")
		b.have(t, "other r0 another r1") // a little late
		b.finish("r0")
		b.wantDemands("c: 0 to 0 slots, 0 used, 1 starts")
		b.live = false // reserved times do not depend on the lease
		b.enter(t.Context(), "first", 9, "c")
		b.granted(limit, 0, 1, 0)
		b.have(t, "other r0 another r1 first")
		b.granted(limit, 0, 1, 40*time.Millisecond) // no place is free then
		pass(66 * time.Millisecond)
		b.finish("r1")
		b.have(t, "other r0 another r1 first")
		b.wantDemands("c: 0 to 0 slots, 0 used, 1 starts") // the reserved one is not used any more
		b.granted(limit, 0, 3, 0)
		b.have(t, "other r0 another r1 first r2")
		if d := b.wantDemands("c: 0 to 0 slots, 0 used, 0 starts, 2 unused"); !d[0].First.Equal(time.Now().Add(10 * time.Millisecond)) {
			t.Errorf("the start times from %v on are returned", time.Until(d[0].First))
		}
		b.wantDemands()
	})
}

// TestStartsAreReservedForTheirUse: a process reserves no more starts than its own rate and its slots let it use.
func TestStartsAreReservedForTheirUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := history.SharedLimit{Class: "c", PerSecond: 100}
		b := newSharedBench(t, 0, []work.Limit{{Class: "c", PerSecond: 10}}, limit)
		enter := func(b *sharedBench) {
			for i := range 9 {
				b.enter(t.Context(), fmt.Sprintf("r%d", i), 0, "c")
			}
		}
		enter(b)
		b.wantDemands("c: 0 to 0 slots, 0 used, 1 starts")
		b.granted(limit, 0, 1, 0)
		b.have(t, "r0")
		demands, again := b.Demands(time.Now())
		if len(demands) > 0 || again != 75*time.Millisecond {
			t.Errorf("demands %+v, again after %v", demands, again)
		}
		time.Sleep(again)
		b.wantDemands("c: 0 to 0 slots, 0 used, 1 starts")

		limit.Concurrent = 2
		b = newSharedBench(t, 0, nil, limit)
		enter(b)
		b.wantDemands("c: 0 to 2 slots, 0 used, 0 starts")
		b.granted(limit, 2, 0, 0)
		b.wantDemands("c: 2 to 2 slots, 0 used, 2 starts")
	})
}

// TestSharedLimitsChange: limits that are set, changed and removed apply to the attempts that wait.
func TestSharedLimitsChange(t *testing.T) {
	t.Parallel()
	limit, own := history.SharedLimit{Class: "c", Concurrent: 2}, work.Limit{Class: "c", Concurrent: 3}
	b := newSharedBench(t, 0, []work.Limit{own})
	for i := range 9 {
		b.enter(t.Context(), fmt.Sprintf("r%d", i), i%2, "c", "d")
	}
	b.have(t, "r0 r1 r2")
	if b.Room([]string{"c"}) != 0 || b.Room([]string{"d"}) < 100 {
		t.Errorf("the limits leave room for %d and %d attempts", b.Room([]string{"c"}), b.Room([]string{"d"}))
	}
	b.set(limit)
	b.finish("r0")
	b.have(t, "r0 r1 r2") // waits for a slot now
	b.wantDemands("c: 0 to 1 slots, 0 used, 0 starts")
	b.finish("r2")
	b.granted(limit, 2, 0, 0)
	b.have(t, "r0 r1 r2 r3 r5") // of the higher priority
	other := history.SharedLimit{Class: "d", Concurrent: 7}
	b.set(limit, other)
	if b.Room([]string{"d"}) != 3 { // four wait
		t.Errorf("the limits leave room for %d attempts", b.Room([]string{"d"}))
	}
	b.finish("r1")
	b.wantDemands("c: 2 to 2 slots, 2 used, 0 starts, free") // no slots of the other limit that could not be used
	b.set()
	b.have(t, "r0 r1 r2 r3 r5 r7")
	b.finish("r3")
	b.have(t, "r0 r1 r2 r3 r5 r7 r4")
	if !b.Limited([]string{"c"}) || b.Limited([]string{"d"}) || b.Unlimited() {
		t.Error("the limit of the process does not apply any more, or a removed one does")
	}
	b.set(limit)
	b.Open()
	if b.Waiting() > 0 {
		t.Errorf("%d attempts wait in a process that drains", b.Waiting())
	}
	b.wantDemands()
}

// TestAttemptsOfFullSharedLimitsStay: an attempt that waits for a shared limit is not one to give to another process.
func TestAttemptsOfFullSharedLimitsStay(t *testing.T) {
	t.Parallel()
	b := newSharedBench(t, 2, nil)
	b.look(5, 0, 5, 0)
	b.enter(t.Context(), "waits", 0, "c")
	if late := b.Overdue(time.Now().Add(time.Hour)); late != nil {
		t.Errorf("%v are to be given away", late)
	}
	b.look(5, 0, 1, 0) // there are slots, but no capacity
	b.enter(t.Context(), "other", 0, "d")
	b.enter(t.Context(), "another", 0, "d")
	if late := b.Overdue(time.Now().Add(time.Hour)); !slices.Equal(late, []string{"waits"}) {
		t.Errorf("%v are to be given away", late)
	}
}
