package historytest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// queue returns the store as a history.Queue, and skips the rest of the test if it is not one.
func queue(t *testing.T, s history.Store) history.Queue {
	t.Helper()
	q, ok := history.As[history.Queue](s)
	if !ok {
		t.Skipf("%T does not hand out runs", s)
	}
	return q
}

func anyLane(history.Lane) bool { return true }

// ready returns a place in the lane with a name.
func ready(lane string, priority int, tenant string) history.Ready {
	return history.Ready{Lane: history.ParseLane(lane), Priority: priority, Tenant: tenant}
}

// beginOwned begins runs that a process owns.
func beginOwned(t *testing.T, s history.Store, process string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		b := NewTrace(t, id).Batch(Start("w", "in_process")...)
		b.Owner = process
		must(t, s.Append(t.Context(), b))
	}
}

// beginReady begins runs that are ready in the lane default/step:a for a tenant, without an owner.
func beginReady(t *testing.T, s history.Store, priority int, tenant string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		place := ready("default/step:a", priority, tenant)
		b := NewTrace(t, id).Batch(Start("w", "in_process")...)
		b.Ready = &place
		must(t, s.Append(t.Context(), b))
	}
}

// wantReadyClaim lets a process claim up to limit ready runs of all lanes; want lists the runs it should get.
func wantReadyClaim(t *testing.T, s history.Store, process string, limit int, want ...string) {
	t.Helper()
	wantClaimOf(t, s, history.ReadyClaim{Process: process, Serves: anyLane, Limit: limit}, want...)
}

func wantClaimOf(t *testing.T, s history.Store, c history.ReadyClaim, want ...string) {
	t.Helper()
	c.Found = func(r history.ReadyRun) {
		id := r.Execution.ID
		seq, position, err := s.Position(t.Context(), id)
		must(t, err)
		if e := got[history.Execution](t)(s.Execution(t.Context(), id)); !slices.Contains(want, id) || !reflect.DeepEqual(r, history.ReadyRun{Execution: e, PositionSeq: seq, Position: position}) {
			t.Errorf("a claim finds %+v, want %+v at %d, %q", r, e, seq, position)
		}
	}
	if claimed := got[[]string](t)(queue(t, s).ClaimReady(t.Context(), c)); !slices.Equal(claimed, want) {
		t.Errorf("%s claims %v, want %v", c.Process, claimed, want)
	}
	for _, id := range want {
		if o := got[history.Owner](t)(s.Owner(t.Context(), id)); o.Process != c.Process {
			t.Errorf("%s has claimed %s, and %q owns it", c.Process, id, o.Process)
		}
		wantNotReady(t, s, id)
	}
}

// wantPlace compares the place of a run; since is in seconds after Begin.
func wantPlace(t *testing.T, s history.Store, id string, r history.Ready, ahead int, since float64) {
	t.Helper()
	p, ok, err := queue(t, s).Place(t.Context(), id)
	must(t, err)
	if want := (history.Place{Ready: r, Ahead: ahead, Since: Begin.Add(time.Duration(since * float64(time.Second)))}); !ok || p != want {
		t.Errorf("the place of %s is %+v (%t), want %+v", id, p, ok, want)
	}
}

func wantNotReady(t *testing.T, s history.Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if p, ok, err := queue(t, s).Place(t.Context(), id); ok || p != (history.Place{}) || err != nil {
			t.Errorf("%s is ready: %+v, %t, %v", id, p, ok, err)
		}
	}
}

// wantLanes compares the lanes in the notation "default/step:a 2 runs since 0s".
func wantLanes(t *testing.T, s history.Store, want ...string) {
	t.Helper()
	var lanes []string
	for _, l := range got[[]history.LaneUse](t)(queue(t, s).Lanes(t.Context())) {
		if l.Since.Location() != time.UTC {
			t.Errorf("%s has waited since %v", l, l.Since)
		}
		lanes = append(lanes, fmt.Sprintf("%s %d runs since %v", l, l.Runs, l.Since.Sub(Begin)))
	}
	if !slices.Equal(lanes, want) {
		t.Errorf("the lanes are\n%s\nwant\n%s", strings.Join(lanes, "\n"), strings.Join(want, "\n"))
	}
}

// readyOrder: the highest priority comes first, then the lowest turn, then the oldest run, over all lanes that the process serves.
func readyOrder(t *testing.T, s history.Store, _ *clock) {
	ctx, q := t.Context(), queue(t, s)
	must(t, s.Renew(ctx, "p", time.Minute))
	must(t, s.Renew(ctx, "q", time.Minute))
	wantReadyClaim(t, s, "q", 10)
	beginOwned(t, s, "p", "a", "b", "c", "d", "e", "f", "g")
	must(t, q.Offer(ctx, "p",
		history.Offer{ExecutionID: "g", Ready: ready("default/step:a", 0, "t")}, // turn 0
		history.Offer{ExecutionID: "f", Ready: ready("default/step:b", 0, "t")}, // turn 1
		history.Offer{ExecutionID: "e", Ready: ready("default/step:b", 0, "u")}, // turn 1, the first that waits there
		history.Offer{ExecutionID: "d", Ready: ready("default/step:a", 5, "t")}, // turn 2
		history.Offer{ExecutionID: "c", Ready: ready("gpu/step:a", 5, "u")},     // turn 2
		history.Offer{ExecutionID: "b", Ready: ready("gpu/step:b", -3, "v")},    // turn 0
		history.Offer{ExecutionID: "a", Ready: ready("default/step:a", 0, "w")}, // turn 0
	))
	wantLanes(t, s, "default/step:a 3 runs since 0s", "default/step:b 2 runs since 0s", "gpu/step:a 1 runs since 0s", "gpu/step:b 1 runs since 0s")
	wantReadyClaim(t, s, "q", 1, "c") // the oldest of two with the same turn
	wantClaimOf(t, s, history.ReadyClaim{Process: "q", Serves: func(history.Lane) bool { return false }, Limit: 9})
	inB := func(l history.Lane) bool { return l == history.Lane{Queue: "default", Needs: "step:b"} }
	wantClaimOf(t, s, history.ReadyClaim{Process: "q", Serves: inB, Limit: 1}, "e")
	roomOf := func(l history.Lane) int {
		if l.Needs == "step:a" {
			return 2
		}
		return -1
	}
	wantClaimOf(t, s, history.ReadyClaim{Process: "q", Serves: anyLane, Room: roomOf, Limit: 9}, "d", "a") // g has no room
	wantReadyClaim(t, s, "q", 10, "g", "f", "b")
	wantReadyClaim(t, s, "q", 10)
	wantLanes(t, s)
	for _, c := range []history.ReadyClaim{{Serves: anyLane, Limit: 1}, {Process: "q", Limit: 1}, {Process: "q", Serves: anyLane}} {
		wantRefusal(t, problem.Internal)(q.ClaimReady(ctx, c))
	}
}

// readyFairness: tenants take turns, however many runs another tenant has queued before.
func readyFairness(t *testing.T, s history.Store, _ *clock) {
	const big, small, begun = 900, 100, 108
	ctx, q := t.Context(), queue(t, s)
	importer, ok := history.As[history.Importer](s)
	if !ok {
		t.Skipf("%T cannot import runs", s)
	}
	var in history.Import
	var ids []string
	for i := range big + small {
		ids = append(ids, fmt.Sprintf("r%03d", i))
		in.Runs = append(in.Runs, imported(t, ids[i], Start("w", "in_process")...))
	}
	must(t, importer.Import(ctx, in))
	must(t, s.Renew(ctx, "p", time.Minute))
	wantClaim(t, s, "p", ids, ids...)
	offer := func(tenant string, ids []string) {
		offers := make([]history.Offer, len(ids))
		for i := range ids {
			offers[i] = history.Offer{ExecutionID: ids[i], Ready: ready("default/step:a", 0, tenant)}
		}
		must(t, q.Offer(ctx, "p", offers...))
	}
	offer("big", ids[:big])
	all := history.ReadyClaim{Process: "q", Serves: anyLane, Limit: begun}
	must(t, s.Renew(ctx, "q", time.Minute))
	if first := got[[]string](t)(q.ClaimReady(ctx, all)); !slices.Equal(first, ids[:begun]) {
		t.Errorf("the runs of one tenant are claimed in the order %v", first)
	}
	offer("small", ids[big:])
	all.Limit = big + small
	order := got[[]string](t)(q.ClaimReady(ctx, all))
	if len(order) != big+small-begun {
		t.Fatalf("%d runs are claimed", len(order))
	}
	for i, id := range ids[big:] {
		if place := slices.Index(order, id); place < 2*i || place > 2*i+2 {
			t.Errorf("run %d of the small tenant comes at place %d", i, place)
		}
	}
}

// readyTurns: the turn of a run is one more than the last that waits for its tenant, and at least the first in its lane and priority.
func readyTurns(t *testing.T, s history.Store, _ *clock) {
	must(t, s.Renew(t.Context(), "q", time.Minute))
	beginReady(t, s, 0, "t", "a0", "a1", "a2", "a3") // turns 0 to 3
	beginReady(t, s, 0, "u", "b0")                   // 0
	wantReadyClaim(t, s, "q", 3, "a0", "b0", "a1")
	beginReady(t, s, 0, "v", "c2") // 2, as the first that waits
	beginReady(t, s, 0, "t", "a4")
	beginReady(t, s, 9, "t", "a5") // 5: the tenant's turns are those of all priorities and lanes
	beginReady(t, s, 9, "w", "d5") // 5
	beginReady(t, s, 0, "w", "d6") // 6
	beginReady(t, s, 0, "v", "c3") // 3
	wantPlace(t, s, "d5", ready("default/step:a", 9, "w"), 1, 0)
	wantPlace(t, s, "c3", ready("default/step:a", 0, "v"), 5, 0)
	wantReadyClaim(t, s, "q", 99, "a5", "d5", "a2", "c2", "a3", "c3", "a4", "d6")
	beginReady(t, s, 0, "t", "a6")
	beginReady(t, s, 0, "u", "b1") // 0 again, since none waits
	wantReadyClaim(t, s, "q", 99, "a6", "b1")
}

// readyOldest: a claim of the run that has been ready longest takes it first, and then the others in order.
func readyOldest(t *testing.T, s history.Store, c *clock) {
	must(t, s.Renew(t.Context(), "q", time.Minute))
	other := func(l history.Lane) bool { return l.Needs == "step:z" }
	beginReady(t, s, 0, "t", "late")
	c.pass(time.Second)
	for i, id := range []string{"high0", "high1", "high2", "high3"} {
		beginReady(t, s, 9-i, "t", id)
		c.pass(time.Second)
	}
	wantLanes(t, s, "default/step:a 5 runs since 0s")
	wantPlace(t, s, "late", ready("default/step:a", 0, "t"), 4, 0)
	oldest := history.ReadyClaim{Process: "q", Serves: anyLane, Limit: 3, Oldest: true}
	wantClaimOf(t, s, history.ReadyClaim{Process: "q", Serves: other, Limit: 3, Oldest: true})
	wantClaimOf(t, s, oldest, "late", "high0", "high1")
	beginReady(t, s, 99, "t", "highest")
	oldest.Limit = 1
	wantClaimOf(t, s, oldest, "high2")
	oldest.Limit = 9
	wantClaimOf(t, s, oldest, "high3", "highest")
	wantClaimOf(t, s, oldest)
}

// readyList: a list of ready runs has only those, in the order of lists, whatever else it filters.
func readyList(t *testing.T, s history.Store, _ *clock) {
	must(t, s.Renew(t.Context(), "p", time.Hour))
	child := "b" + history.ChildMark + "n"
	for i, id := range []string{"a", "b", child, "c", "d"} { // each is a second younger
		x := NewTrace(t, id)
		x.Now = Begin.Add(time.Duration(i) * time.Second)
		lines := Start("w", "in_process")
		if id == "c" || id == "d" {
			lines[0] = strings.TrimSuffix(lines[0], "}") + `,"labels":{"of":"` + id + `"}}`
		}
		b := x.Batch(lines...)
		if id == "b" {
			b.Owner = "p"
		} else {
			b.Ready = &history.Ready{Lane: history.Lane{Queue: "default", Needs: "step:a"}, Tenant: "t"}
		}
		must(t, s.Append(t.Context(), b))
	}
	want := func(q history.ListQuery, ids ...string) {
		t.Helper()
		q.Ready = true
		for _, q.Limit = range []int{1, 2, 100} {
			if found := slices.Concat(pages(t, s, q)...); !slices.Equal(found, ids) {
				t.Errorf("%+v: %v, want %v", q, found, ids)
			}
		}
	}
	want(history.ListQuery{}, "d", "c", child, "a")
	want(history.ListQuery{Oldest: true}, "a", child, "c", "d")
	want(history.ListQuery{Roots: true}, "d", "c", "a")
	want(history.ListQuery{Below: "b"}, child)
	want(history.ListQuery{Labels: map[string]string{"of": "c"}}, "c")
	want(history.ListQuery{Labels: map[string]string{"of": ""}, Unhandled: true}, "d", "c")
	want(history.ListQuery{Phases: history.OpenPhases(), DefinitionName: "w"}, "d", "c", child, "a")
	want(history.ListQuery{UpdatedAfter: Begin.Add(3 * time.Second)}, "d", "c")
	want(history.ListQuery{Phase: history.PhaseCompleted})
	wantReadyClaim(t, s, "p", 1, "a")
	want(history.ListQuery{}, "d", "c", child)
}

// readyBatches: a batch makes a run ready, with the records that need an attempt.
func readyBatches(t *testing.T, s history.Store, c *clock) {
	ctx := t.Context()
	must(t, s.Renew(ctx, "p", time.Hour))
	must(t, s.Renew(ctx, "q", time.Hour))
	place := ready("default/step:a", 1, "t")
	x := NewTrace(t, "x")
	with := func(owner string, r *history.Ready, lines ...string) {
		t.Helper()
		b := x.Batch(lines...)
		b.Owner, b.Disown, b.Ready = owner, owner != "" && r != nil, r
		must(t, s.Append(ctx, b))
	}
	with("", &place, Start("w", "in_process")...) // a start without an owner
	wantPlace(t, s, "x", place, 0, 0)
	wantOwner(t, s, "x", "", 0)
	wantUnowned(t, s, 0)
	wantReadyClaim(t, s, "p", 1, "x")
	with("", &place, "C ScheduleNode a") // has an owner
	wantNotReady(t, s, "x")
	wantOwner(t, s, "x", "p", 3600)
	with("p", nil, "C ScheduleNode b")
	wantNotReady(t, s, "x")
	c.pass(time.Second)
	with("p", &place, "C ScheduleNode c") // gives the run up
	wantPlace(t, s, "x", place, 0, 1)
	c.pass(time.Second)
	wantOwner(t, s, "x", "", -1)
	wantUnowned(t, s, 0)
	with("", nil, "C ScheduleNode d") // stays ready
	wantPlace(t, s, "x", place, 0, 1)
	// A ready run keeps its place unless its lane or priority changes.
	beginReady(t, s, 1, "u", "y0")
	beginReady(t, s, 1, "t", "z1")
	again := place
	again.Tenant = "v"
	with("", &again, "C ScheduleNode d")
	wantPlace(t, s, "x", place, 0, 1)
	again = ready("default/step:a", 2, "t")
	with("", &again, "C ScheduleNode d")
	wantPlace(t, s, "x", again, 0, 1)
	again.Lane.Needs = "step:b"
	with("", &again, "C ScheduleNode d")
	wantPlace(t, s, "x", again, 0, 1)
	wantLanes(t, s, "default/step:a 2 runs since 2s", "default/step:b 1 runs since 1s")
	again = place
	with("", &again, "C ScheduleNode d") // with a new turn, after that of z1
	wantPlace(t, s, "x", again, 2, 1)
	wantReadyClaim(t, s, "q", 9, "y0", "z1", "x")
	with("q", &place, End()...) // has ended
	wantNotReady(t, s, "x")
	x = NewTrace(t, "at once")
	with("", &place, lines(Start("w", "in_process"), End())...)
	wantNotReady(t, s, "at once", "unknown")
	wantReadyClaim(t, s, "q", 9)
	wantUnowned(t, s, 0)

	x = NewTrace(t, "faulty")
	for name, spoil := range map[string]func(b *history.Batch){
		"an owner":             func(b *history.Batch) { b.Owner = "p" },
		"no queue":             func(b *history.Batch) { b.Ready.Lane.Queue = "" },
		"a queue with a slash": func(b *history.Batch) { b.Ready.Lane.Queue = "a/b" },
		"a lane not in UTF-8":  func(b *history.Batch) { b.Ready.Lane.Needs = "step:\xff" },
		"a tenant not in it":   func(b *history.Batch) { b.Ready.Tenant = "\xff" },
	} {
		aside, place := *x, place
		b := aside.Batch(Start("w", "in_process")...)
		b.Ready = &place
		spoil(&b)
		if err := s.Append(ctx, b); !errors.Is(err, problem.Internal) {
			t.Errorf("a batch with %s: %v", name, err)
		}
	}
	wantRefusal(t, problem.ExecutionNotFound)(s.Execution(ctx, "faulty"))
}

// readyEnds: a run stops being ready when a process becomes its owner, when it ends and when it is deleted, and only then.
func readyEnds(t *testing.T, s history.Store, c *clock) {
	ctx := t.Context()
	must(t, s.Renew(ctx, "p", time.Minute))
	ids := []string{"appended", "cancelled", "claimed", "refused", "signalled", "taken"}
	beginReady(t, s, 0, "t", ids...)
	wantUnowned(t, s, 0)
	append := func(id, owner string, lines ...string) {
		t.Helper()
		x := NewTrace(t, id)
		x.Execution = got[history.Execution](t)(s.Execution(ctx, id))
		b := x.Batch(lines...)
		b.Owner = owner
		must(t, s.Append(ctx, b))
	}
	append("signalled", "", "C ScheduleNode a")
	append("appended", "p", "C ScheduleNode a")
	append("cancelled", "", "E ExecutionCancelled")
	wantClaim(t, s, "p", []string{"claimed"}, "claimed")
	wantLanes(t, s, "default/step:a 3 runs since 0s")
	wantNotReady(t, s, "appended", "cancelled", "claimed")
	// A run that is cancelled after another process has claimed it stays with that process until it ends.
	wantReadyClaim(t, s, "p", 2, "refused", "signalled")
	append("signalled", "", "C CancelExecution")
	wantOwner(t, s, "signalled", "p", 60)
	append("signalled", "", `E ExecutionCancelled {"reason":"enough"}`)
	wantOwner(t, s, "signalled", "", 0)
	wantNotReady(t, s, "signalled")
	// A run whose claimer's lease ends is not ready: its process has departed.
	must(t, s.Renew(ctx, "q", time.Second))
	wantReadyClaim(t, s, "q", 9, "taken")
	c.pass(time.Second)
	must(t, s.Disown(ctx, "p", "claimed", "refused", "appended"))
	c.pass(time.Second)
	wantNotReady(t, s, ids...)
	wantDeparted(t, s, "q")
	wantUnowned(t, s, 0, "appended", "claimed", "refused", "taken")
	wantReadyClaim(t, s, "p", 9)
	wantLanes(t, s)
}

// readyDeleted: a deleted run is not ready, and neither is a new one with its id.
func readyDeleted(t *testing.T, s history.Store) {
	beginReady(t, s, 0, "t", "x", "y")
	x := NewTrace(t, "x")
	x.Execution = got[history.Execution](t)(s.Execution(t.Context(), "x"))
	x.Append(s, End()...)
	prune(t, s, history.PruneQuery{Phases: []history.Phase{history.PhaseCompleted}, Limit: 10})
	NewTrace(t, "x").Append(s, Start("w", "in_process")...)
	wantNotReady(t, s, "x")
	wantUnowned(t, s, 0, "x")
	wantLanes(t, s, "default/step:a 1 runs since "+since(t, s, "y"))
}

// since returns how long after Begin a run has become ready.
func since(t *testing.T, s history.Store, id string) string {
	t.Helper()
	p, _, err := queue(t, s).Place(t.Context(), id)
	must(t, err)
	return p.Since.Sub(Begin).String()
}

// offers: a process gives away runs that it owns, all in one transaction.
func offers(t *testing.T, s history.Store, c *clock) {
	ctx, q := t.Context(), queue(t, s)
	must(t, s.Renew(ctx, "p", time.Minute))
	must(t, s.Renew(ctx, "q", time.Minute))
	beginOwned(t, s, "p", "a", "b", "ends")
	beginOwned(t, s, "q", "other")
	NewTrace(t, "free").Append(s, Start("w", "in_process")...)
	x := NewTrace(t, "ends")
	x.Execution = got[history.Execution](t)(s.Execution(ctx, "ends"))
	x.Append(s, End()...)
	must(t, q.Offer(ctx, "p"))
	first, second := ready("default/step:a", 0, "t"), ready("gpu/llm_call:m", 7, "")
	bad := first
	bad.Lane.Queue = "a/b"
	wantCode(t, q.Offer(ctx, "p", history.Offer{ExecutionID: "a", Ready: first}, history.Offer{ExecutionID: "b", Ready: bad}), problem.Internal)
	wantOwned(t, s, "p", map[string]int64{"a": 5, "b": 5})
	must(t, q.Offer(ctx, "", history.Offer{ExecutionID: "free", Ready: first}))
	must(t, q.Offer(ctx, "p",
		history.Offer{ExecutionID: "b", Ready: first}, history.Offer{ExecutionID: "other", Ready: first}, history.Offer{ExecutionID: "free", Ready: first},
		history.Offer{ExecutionID: "unknown", Ready: first}, history.Offer{ExecutionID: "ends", Ready: first}, history.Offer{ExecutionID: "a", Ready: second},
		history.Offer{ExecutionID: "b", Ready: second}, // a second time: it is not owned any more
	))
	c.pass(time.Second)
	wantOwned(t, s, "p", nil)
	wantOwner(t, s, "a", "", -1)
	wantOwner(t, s, "b", "", -1)
	wantOwner(t, s, "other", "q", 59)
	wantPlace(t, s, "a", second, 0, 0)
	wantPlace(t, s, "b", first, 0, 0)
	wantNotReady(t, s, "other", "free", "unknown", "ends")
	wantLanes(t, s, "default/step:a 1 runs since 0s", "gpu/llm_call:m 1 runs since 0s")
	wantUnowned(t, s, 0, "free")
	must(t, q.Offer(ctx, "q", history.Offer{ExecutionID: "a", Ready: first}))
	wantPlace(t, s, "a", second, 0, 0)
	// The same process may claim it back. Given away again, it begins to wait again.
	wantReadyClaim(t, s, "p", 1, "a")
	c.pass(time.Second)
	must(t, q.Offer(ctx, "p", history.Offer{ExecutionID: "a", Ready: first}))
	wantPlace(t, s, "a", first, 1, 2)
	// The owner of a run may give it away after the end of its lease, until another process claims it.
	c.pass(time.Hour)
	must(t, q.Offer(ctx, "q", history.Offer{ExecutionID: "other", Ready: first}))
	wantUnowned(t, s, 0, "free")
	must(t, s.Renew(ctx, "p", time.Minute))
	wantReadyClaim(t, s, "p", 9, "b", "a", "other")
}

// laneNames: any text names a lane.
func laneNames(t *testing.T, s history.Store, _ *clock) {
	ctx := t.Context()
	must(t, s.Renew(ctx, "p", time.Minute))
	lanes := []history.Lane{
		{Queue: "a b", Needs: "step:*"}, {Queue: "a"}, {Queue: "a", Needs: "\x00"}, {Queue: "a", Needs: `"\'/x:y`}, {Queue: "a", Needs: "é ☃"}, {Queue: "ä", Needs: "x/y"},
	}
	var ids, want []string
	for i, lane := range lanes {
		id := fmt.Sprint("r", i)
		b := NewTrace(t, id).Batch(Start("w", "in_process")...)
		b.Ready = &history.Ready{Lane: lane, Tenant: lane.Needs}
		must(t, s.Append(ctx, b))
		wantPlace(t, s, id, *b.Ready, 0, 0)
		ids, want = append(ids, id), append(want, lane.String()+" 1 runs since 0s")
	}
	wantLanes(t, s, want...)
	var asked []history.Lane
	claim := history.ReadyClaim{Process: "p", Limit: 1, Serves: func(l history.Lane) bool {
		asked = append(asked, l)
		return l == lanes[2]
	}}
	wantClaimOf(t, s, claim, ids[2])
	if !slices.Equal(asked, lanes) {
		t.Errorf("asked for the lanes %q", asked)
	}
	wantReadyClaim(t, s, "p", 99, slices.Delete(ids, 2, 3)...)
}

// oneReadyClaimerWins: no ready run is claimed twice.
func oneReadyClaimerWins(t *testing.T, s history.Store, _ *clock) { ContendForReady(t, 4, 40, s) }

// ContendForReady lets processes, spread over the stores, claim ready runs and give some of them away again, and checks that each run goes to
// one process at a time and all go to some process at the end.
func ContendForReady(t *testing.T, processes, runs int, stores ...history.Store) {
	ctx := t.Context()
	for i := range runs {
		beginReady(t, stores[0], i%3, fmt.Sprint(i%2), fmt.Sprintf("ready%d", i))
	}
	var mu sync.Mutex
	holder, offered, kept := map[string]string{}, map[string]bool{}, 0
	work := func(s history.Store, process string) error {
		q, ok := history.As[history.Queue](s)
		if !ok {
			return errors.New("the store does not hand out runs")
		}
		if err := s.Renew(ctx, process, time.Hour); err != nil {
			return err
		}
		for done := false; !done; {
			ids, err := q.ClaimReady(ctx, history.ReadyClaim{Process: process, Serves: anyLane, Limit: 3, Oldest: len(process)%2 == 0})
			if err != nil {
				return err
			}
			var back []history.Offer
			mu.Lock()
			for _, id := range ids {
				if holder[id] != "" {
					t.Errorf("%s went to %s, and to %s", id, holder[id], process)
				}
				if holder[id] = process; offered[id] {
					kept++
					continue
				}
				offered[id], holder[id] = true, ""
				back = append(back, history.Offer{ExecutionID: id, Ready: ready("other/step:b", 0, process)})
			}
			done = kept == runs || t.Failed()
			mu.Unlock()
			if err := q.Offer(ctx, process, back...); err != nil {
				return err
			}
		}
		return nil
	}
	var wg sync.WaitGroup
	for p := range processes {
		wg.Go(func() {
			if err := work(stores[p%len(stores)], fmt.Sprint("p", p)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range runs {
		id := fmt.Sprintf("ready%d", i)
		if o := got[history.Owner](t)(stores[i%len(stores)].Owner(ctx, id)); o.Process != holder[id] || !o.Live() {
			t.Errorf("%s went to %q, and %+v owns it", id, holder[id], o)
		}
		wantNotReady(t, stores[i%len(stores)], id)
	}
}

// watchingReady: a watch wakes when a run becomes ready.
func watchingReady(t *testing.T, s history.Store, _ *clock) { WatchReady(t, s, s) }

// WatchReady checks that a watch of one store wakes when a run becomes ready in another one that shares its data, or is ready when the watch
// begins. It closes the watching store.
func WatchReady(t *testing.T, watching, s history.Store) {
	q := queue(t, watching)
	woken := make(chan struct{}, 1)
	watch := func(ctx context.Context) chan error {
		ended := make(chan error, 1)
		go func() {
			ended <- q.WatchReady(ctx, func() {
				select {
				case woken <- struct{}{}:
				default:
				}
			})
		}()
		return ended
	}
	must(t, s.Renew(t.Context(), "p", time.Minute))
	n := 0
	// hear waits until a run that becomes ready wakes the watch, which begins at an unknown time.
	hear := func(how string, makeReady func(id string)) {
		t.Helper()
		deadline := time.After(10 * time.Second)
		for again := time.Tick(200 * time.Millisecond); ; {
			select {
			case <-woken:
				ids := got[[]string](t)(queue(t, s).ClaimReady(t.Context(), history.ReadyClaim{Process: "p", Serves: anyLane, Limit: 100}))
				if len(ids) > 0 {
					return
				}
			case <-again:
				n++
				makeReady(fmt.Sprint(how, n))
			case <-deadline:
				t.Fatalf("no watch woke: %s", how)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := watch(ctx)
	begin := func(id string) { beginReady(t, s, 0, "t", id) }
	hear("begun", begin)
	hear("offered", func(id string) {
		beginOwned(t, s, "p", id)
		must(t, queue(t, s).Offer(t.Context(), "p", history.Offer{ExecutionID: id, Ready: ready("default/step:b", 0, "t")}))
	})
	cancel()
	must(t, <-ended)
	begin("before the watch")
	ended = watch(t.Context())
	hear("before the watch", func(string) {})
	hear("begun again", begin)
	must(t, watching.Close())
	wantCode(t, <-ended, problem.Internal)
}

// descriptions: a process with a lease describes itself to others.
func descriptions(t *testing.T, s history.Store, c *clock) {
	ctx := t.Context()
	roster, ok := history.As[history.Roster](s)
	if !ok {
		t.Skipf("%T does not list its processes", s)
	}
	performs := []string{"llm_call", "step:charge"}
	full := history.About{
		Host: "h<1>", PID: 4711, Version: "1.2", Started: Begin.Add(1500 * time.Microsecond).In(time.FixedZone("z", 3600)), Work: "all", Queues: []string{"default", "gpu"},
		Performs: performs, Capacity: 100, InFlight: 3, Waiting: 2, Full: true,
	}
	stored := full
	stored.Started, stored.Performs = Begin.Add(time.Millisecond), slices.Clone(performs)
	must(t, s.Renew(ctx, "p", time.Minute))
	must(t, s.Renew(ctx, "q", 2*time.Minute))
	must(t, roster.Describe(ctx, "p", full))
	performs[0] = "changed"
	must(t, roster.Describe(ctx, "unknown", full))
	beginOwned(t, s, "p", "a", "b")
	beginReady(t, s, 0, "t", "r")
	live := got[[]history.Process](t)(roster.Processes(ctx))
	want := []history.Process{{Name: "p", Left: time.Minute, Runs: 2, About: stored}, {Name: "q", Left: 2 * time.Minute}}
	if !reflect.DeepEqual(live, want) {
		t.Errorf("processes are\n%+v, want\n%+v", live, want)
	}
	live[0].Queues[0], live[0].Performs[0] = "changed", "changed"
	must(t, s.Renew(ctx, "p", time.Hour)) // keeps the description
	wantReadyClaim(t, s, "p", 9, "r")
	NewTrace(t, "ends").Append(s, lines(Start("w", "in_process"), End())...)
	wantProcesses(t, s, history.Process{Name: "p", Left: time.Hour, Runs: 3, About: stored}, want[1])
	brief := history.About{Work: "none", Started: Begin}
	must(t, roster.Describe(ctx, "p", brief)) // replaces it
	must(t, roster.Describe(ctx, "q", full))
	c.pass(2 * time.Minute)
	must(t, roster.Describe(ctx, "q", brief)) // its lease has ended
	must(t, s.Disown(ctx, "p", "a", "b", "r"))
	wantProcesses(t, s, history.Process{Name: "p", Left: 58 * time.Minute, About: brief})
	must(t, s.Release(ctx, "p"))
	must(t, s.Renew(ctx, "q", time.Minute)) // forgets p and q
	must(t, s.Renew(ctx, "p", time.Minute))
	for _, p := range got[[]history.Process](t)(roster.Processes(ctx)) {
		if p.Name == "p" && !reflect.DeepEqual(p.About, history.About{}) || p.Runs != 0 {
			t.Errorf("%s begins with the description %+v and %d runs", p.Name, p.About, p.Runs)
		}
	}
}
