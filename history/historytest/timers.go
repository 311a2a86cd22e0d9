package historytest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

func timers(t *testing.T, s history.Store) {
	ctx := t.Context()
	at := func(seconds int) time.Time { return Begin.Add(time.Duration(seconds) * time.Second) }
	due := func(now time.Time, limit int) string {
		t.Helper()
		var out []string
		for _, k := range got[[]history.Timer](t)(s.DueTimers(ctx, now, limit)) {
			out = append(out, fmt.Sprintf("%s/%s@%g", k.ExecutionID, k.Key, k.Due.Sub(Begin).Seconds()))
		}
		return fmt.Sprint(out)
	}
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	next := func() string {
		t.Helper()
		at, ok, err := s.NextTimer(ctx)
		must(t, err)
		if !ok {
			return "none"
		}
		return fmt.Sprint(at.Sub(Begin).Seconds())
	}
	x, y := NewTrace(t, "x"), NewTrace(t, "y")
	set := func(x *Trace, line string, timers ...history.Timer) {
		t.Helper()
		b := x.Batch(line)
		b.SetTimers, b.Timers = true, timers
		must(t, s.Append(ctx, b))
	}
	want("no timers", next()+due(at(99), 0), "none[]")

	set(x, "E ExecutionStarted", history.Timer{Key: "a", Due: at(30)}, history.Timer{Key: "b", Due: at(10)})
	set(y, "E ExecutionStarted", history.Timer{ExecutionID: "ignored", Key: "a", Due: at(10)})
	want("three timers", next()+due(at(99), 0), "10[x/b@10 y/a@10 x/a@30]")
	want("not yet", due(at(9), 0), "[]")
	want("exactly", due(at(10), 0), "[x/b@10 y/a@10]")
	want("limit", due(at(99), 2), "[x/b@10 y/a@10]")

	x.Append(s, "C ScheduleNode n")
	want("kept", due(at(99), 0), "[x/b@10 y/a@10 x/a@30]")
	set(x, "C ScheduleNode n", history.Timer{Key: "a", Due: at(5)}, history.Timer{Key: `"c"`, Due: at(50).Add(time.Microsecond)})
	want("replaced", next()+due(at(99), 0), `5[x/a@5 y/a@10 x/"c"@50.001]`)

	moved := history.Batch{
		ExecutionID: "x", ExpectedSeq: x.Execution.Seq, Execution: x.Execution, Position: []byte("p"),
		SetTimers: true, Timers: []history.Timer{{Key: "a", Due: at(7)}},
	}
	must(t, s.Append(ctx, moved))
	want("moved without a record", next()+due(at(99), 0), "7[x/a@7 y/a@10]")
	if seq, data, err := s.Position(ctx, "x"); err != nil || seq != x.Execution.Seq || string(data) != "p" {
		t.Errorf("position of a moved timer: %d %q %v", seq, data, err)
	}
	late := moved
	late.ExpectedSeq--
	late.Execution.Seq--
	wantCode(t, s.Append(ctx, late), problem.HistoryConflict)
	for what, spoil := range map[string]func(b *history.Batch){
		"timers kept":  func(b *history.Batch) { b.SetTimers = false },
		"a lease":      func(b *history.Batch) { b.Lease = history.Lease{Owner: "me", Expires: at(99)} },
		"an owner":     func(b *history.Batch) { b.Owner = "me" },
		"a definition": func(b *history.Batch) { b.Definition = &history.StoredDefinition{Hash: "h", Text: []byte("{}")} },
	} {
		b := moved
		spoil(&b)
		if err := s.Append(ctx, b); !errors.Is(err, problem.Internal) {
			t.Errorf("a batch without records, with %s: %v", what, err)
		}
	}
	want("kept by refusals", next()+due(at(99), 0), "7[x/a@7 y/a@10]")

	set(x, "C ScheduleNode n")
	set(y, "C ScheduleNode n")
	want("emptied", next()+due(at(99), 0), "none[]")
}

// endDropsTimers: nothing wakes a run that has ended, and nothing restores it.
func endDropsTimers(t *testing.T, s history.Store) {
	ctx := t.Context()
	x := NewTrace(t, "x")
	b := x.Batch(Start("w", "in_process")...)
	b.Position = []byte("p")
	b.SetTimers, b.Timers = true, []history.Timer{{Key: "k", Due: Begin}}
	must(t, s.Append(ctx, b))
	x.Append(s, End()...)
	if due := got[[]history.Timer](t)(s.DueTimers(ctx, Begin.Add(time.Hour), 0)); len(due) != 0 {
		t.Errorf("timers of a run that has ended: %v", due)
	}
	if seq, data, err := s.Position(ctx, "x"); seq != 0 || data != nil || err != nil {
		t.Errorf("position of a run that has ended: %d %q, %v", seq, data, err)
	}
}

func leases(t *testing.T, s history.Store) {
	ctx := t.Context()
	at := func(seconds int) time.Time { return Begin.Add(time.Duration(seconds) * time.Second) }
	acquire := func(id, owner string, now, expires int, want bool) {
		t.Helper()
		if won := got[bool](t)(s.AcquireLease(ctx, id, owner, at(now), at(expires))); won != want {
			t.Errorf("%s asks for %s at %d: got %t", owner, id, now, won)
		}
	}
	holds := func(id string, want history.Lease) {
		t.Helper()
		if l := got[history.Lease](t)(s.Lease(ctx, id)); l != want {
			t.Errorf("the lease of %s is %+v, want %+v", id, l, want)
		}
	}
	holds("x", history.Lease{})
	acquire("x", "a", 0, 10, true)
	acquire("x", "b", 5, 20, false)
	acquire("y", "b", 5, 20, true)
	holds("x", history.Lease{Owner: "a", Expires: at(10)})
	acquire("x", "a", 9, 30, true) // extended
	holds("x", history.Lease{Owner: "a", Expires: at(30)})
	holds("y", history.Lease{Owner: "b", Expires: at(20)})
	acquire("x", "b", 11, 40, false)
	acquire("x", "b", 29, 40, false)
	acquire("x", "b", 30, 40, true) // expired
	acquire("x", "a", 31, 50, false)
	must(t, s.ReleaseLease(ctx, "x", "a")) // not a's
	acquire("x", "a", 32, 50, false)
	holds("x", history.Lease{Owner: "b", Expires: at(40)})
	must(t, s.ReleaseLease(ctx, "x", "b"))
	holds("x", history.Lease{})
	acquire("x", "a", 33, 50, true)
	acquire("x", "a", 34, 34, true) // given back, with a note of when
	holds("x", history.Lease{Owner: "a", Expires: at(34)})
	acquire("x", "b", 34, 50, true)
}

// batchLeases: a batch takes a lease that is free, and is refused as a whole if another owner has it.
func batchLeases(t *testing.T, s history.Store) {
	ctx := t.Context()
	x := NewTrace(t, "x")
	in := func(seconds int) time.Time { return Begin.Add(time.Duration(seconds) * time.Second) }
	with := func(l history.Lease, release bool) {
		t.Helper()
		b := x.Batch("C ScheduleNode a")
		b.Lease, b.ReleaseLease = l, release
		must(t, s.Append(ctx, b))
	}
	free := func(owner string, now int, want bool) {
		t.Helper()
		if won := got[bool](t)(s.AcquireLease(ctx, "x", owner, in(now), in(now))); won != want {
			t.Errorf("%s asks at %d: got %t", owner, now, won)
		}
	}
	with(history.Lease{Owner: "a", Expires: in(10)}, false)
	free("b", 5, false)
	aside := *x
	refused := aside.Batch("C ScheduleNode b", "E TimerStarted w")
	refused.Lease = history.Lease{Owner: "b", Expires: in(60)}
	refused.Definition = &history.StoredDefinition{Hash: "h", Text: []byte("{}")}
	refused.SetTimers, refused.Timers = true, []history.Timer{{Key: "k", Due: in(1)}}
	before := got[history.Execution](t)(s.Execution(ctx, "x"))
	wantCode(t, s.Append(ctx, refused), problem.LeaseHeld)
	if e := got[history.Execution](t)(s.Execution(ctx, "x")); e.Seq != before.Seq || e.UpdatedAt != before.UpdatedAt {
		t.Errorf("a refused batch left the projection at seq %d", e.Seq)
	}
	if due := got[[]history.Timer](t)(s.DueTimers(ctx, in(99), 0)); len(due) != 0 {
		t.Errorf("a refused batch left timers: %v", due)
	}
	_, err := s.Definition(ctx, "h")
	wantCode(t, err, problem.DefinitionNotFound)
	refused.ExpectedSeq, refused.Execution.Seq = 0, int64(len(refused.Records))
	wantCode(t, s.Append(ctx, refused), problem.HistoryConflict) // told first
	free("b", 9, false)
	with(history.Lease{}, false) // nothing is asked for
	free("b", 9, false)
	deposed := *x
	refused = deposed.Batch("C ScheduleNode b")
	refused.Lease, refused.ReleaseLease = history.Lease{Owner: "b"}, true // not b's
	wantCode(t, s.Append(ctx, refused), problem.LeaseHeld)
	free("b", 9, false)
	with(history.Lease{Owner: "a"}, true)
	with(history.Lease{Owner: "a"}, true) // nobody's
	with(history.Lease{Owner: "b", Expires: in(20)}, false)
	free("a", 19, false)
	free("a", 20, true)
	if rs := read(t, s, "x"); len(rs) != 5 {
		t.Errorf("the run has %d records", len(rs))
	}
}

func orphans(t *testing.T, s history.Store) {
	ctx := t.Context()
	runs := map[string][]string{
		"d-idle":      Start("w", "in_process"),
		"c-activity":  lines(Start("w", "in_process"), []string{"C ScheduleNode t", `E ActivityRequested t {"attempt":1}`}),
		"b-leased":    Start("w", "in_process"),
		"a-expired":   Start("w", "in_process"),
		"host":        lines(Start("w", "host_mediated"), Node("begin", "t")),
		"signal":      lines(Start("w", "in_process"), []string{`E SignalWaitStarted s {"signalName":"go"}`}),
		"timer":       lines(Start("w", "in_process"), []string{"E TimerStarted w"}),
		"ended":       lines(Start("w", "in_process"), End()),
		"other":       {"E ExecutionStarted", "C ScheduleNode a"},
		"other-asked": {"E ExecutionStarted", "E ActivityRequested a"},
	}
	order := []string{"a-expired", "d-idle", "c-activity", "b-leased", "host", "signal", "timer", "ended", "other", "other-asked"}
	for i, id := range order {
		x := NewTrace(t, id)
		x.Now = Begin.Add(time.Duration(i) * time.Second)
		b := x.Batch(runs[id]...)
		switch id {
		case "b-leased":
			b.Lease = history.Lease{Owner: "o", Expires: Begin.Add(time.Hour)}
		case "a-expired":
			b.Lease = history.Lease{Owner: "o", Expires: Begin.Add(time.Minute)}
		}
		must(t, s.Append(ctx, b))
	}
	check := func(now time.Time, limit int, want ...string) {
		t.Helper()
		if ids := got[[]string](t)(s.Orphans(ctx, now, limit)); !slices.Equal(ids, want) {
			t.Errorf("got %v, want %v", ids, want)
		}
	}
	check(Begin.Add(time.Minute), 0, "d-idle", "c-activity", "a-expired")
	check(Begin.Add(time.Minute-1), 0, "d-idle", "c-activity")
	check(Begin.Add(time.Minute), 2, "d-idle", "c-activity")
	check(Begin.Add(time.Hour), 0, "d-idle", "c-activity", "a-expired", "b-leased")
	must(t, s.ReleaseLease(ctx, "b-leased", "o"))
	check(Begin.Add(time.Minute), 3, "d-idle", "c-activity", "b-leased")
	// Whoever tries in vain lets the lease run out; then the others come first.
	got[bool](t)(s.AcquireLease(ctx, "d-idle", "p", Begin, Begin.Add(2*time.Minute)))
	check(Begin.Add(time.Minute), 0, "c-activity", "b-leased", "a-expired")
	check(Begin.Add(time.Hour), 0, "c-activity", "b-leased", "a-expired", "d-idle")
}

// orphanedParents: a run that waits for a subworkflow is an orphan when nobody will tell it the end.
func orphanedParents(t *testing.T, s history.Store) {
	ctx := t.Context()
	for _, id := range []string{"p1", "p2", "p3"} {
		NewTrace(t, id).Append(s, lines(Start("w", "in_process"), []string{
			fmt.Sprintf(`E SubworkflowStarted v {"workflowRef":"w","parentExecutionId":%q,"childExecutionId":%q}`, id, id+":sub:v"),
		})...)
	}
	NewTrace(t, "p2:sub:v").Append(s, lines(Start("c", "host_mediated"), Node("begin", "t"))...)
	NewTrace(t, "p3:sub:v").Append(s, lines(Start("c", "in_process"), End())...)
	if ids := got[[]string](t)(s.Orphans(ctx, Begin, 0)); !slices.Equal(ids, []string{"p1", "p3"}) {
		t.Errorf("got %v, want p1, whose child never began, and p3, whose child has ended", ids)
	}
}

// orphanedChildren: a subworkflow is an orphan when its parent has ended without it, whatever it rests on.
func orphanedChildren(t *testing.T, s history.Store) {
	ctx := t.Context()
	child := func(parent string) string {
		return `E ExecutionStarted {"workflowName":"c","activityExecutionMode":"host_mediated","parentExecutionId":"` + parent + `"}`
	}
	wait := `E SignalWaitStarted s {"signalName":"go"}`
	NewTrace(t, "open").Append(s, Start("w", "host_mediated")...)
	NewTrace(t, "closed").Append(s, lines(Start("w", "host_mediated"), End())...)
	NewTrace(t, "open:sub:v").Append(s, child("open"), wait)
	NewTrace(t, "closed:sub:v").Append(s, child("closed"), wait)
	NewTrace(t, "closed:sub:w").Append(s, child("closed"), "E ExecutionCancelled")
	NewTrace(t, "none:sub:v").Append(s, child("none"), wait)
	if ids := got[[]string](t)(s.Orphans(ctx, Begin, 0)); !slices.Equal(ids, []string{"closed:sub:v", "open"}) {
		t.Errorf("got %v, want the subworkflow that outlives its parent, and the run that stopped in its walk", ids)
	}
}
