package historytest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// clock is a store's clock that changes only by pass.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: Begin} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// pass lets time pass.
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// justEnded is the remaining time, in seconds, of a lease that ends at this very moment; 0 would mean that its end is unknown.
const justEnded = -1e-9

// wantOwner compares the owner of a run; left is in seconds.
func wantOwner(t *testing.T, s history.Store, id, process string, left float64) {
	t.Helper()
	o := got[history.Owner](t)(s.Owner(t.Context(), id))
	if o.Process != process || o.Left.Seconds() != left || o.Live() != (process != "" && left > 0) {
		t.Errorf("%s is owned by %q for %v (live: %t), want %q for %gs", id, o.Process, o.Left, o.Live(), process, left)
	}
}

// wantClaim lets a process claim runs; want lists the runs it should get.
func wantClaim(t *testing.T, s history.Store, process string, ids []string, want ...string) {
	t.Helper()
	if claimed := got[[]string](t)(s.Claim(t.Context(), process, ids...)); !slices.Equal(claimed, want) {
		t.Errorf("%s claims %v and gets %v, want %v", process, ids, claimed, want)
	}
}

func wantOwned(t *testing.T, s history.Store, process string, want map[string]int64) {
	t.Helper()
	if owned := got[map[string]int64](t)(s.Owned(t.Context(), process)); !maps.Equal(owned, want) {
		t.Errorf("%s owns %v, want %v", process, owned, want)
	}
}

// wantProcesses compares the processes with a live lease.
func wantProcesses(t *testing.T, s history.Store, want ...history.Process) {
	t.Helper()
	roster, ok := history.As[history.Roster](s)
	if !ok {
		t.Fatal("the store does not list its processes")
	}
	if live := got[[]history.Process](t)(roster.Processes(t.Context())); !reflect.DeepEqual(live, want) {
		t.Errorf("processes are %v, want %v", live, want)
	}
}

func overview(t *testing.T, s history.Store, process string) history.Overview {
	t.Helper()
	return got[history.Overview](t)(s.Overview(t.Context(), process))
}

func wantDeparted(t *testing.T, s history.Store, want ...string) {
	t.Helper()
	if departed := overview(t, s, "").Departed; !slices.Equal(departed, want) {
		t.Errorf("departed are %v, want %v", departed, want)
	}
}

func wantUnowned(t *testing.T, s history.Store, limit int, want ...string) {
	t.Helper()
	if ids := got[[]string](t)(s.Unowned(t.Context(), limit)); !slices.Equal(ids, want) {
		t.Errorf("without an owner are %v, want %v", ids, want)
	}
}

// processLeases: one renewal extends the claims to all runs, and the store's clock decides when they end.
func processLeases(t *testing.T, s history.Store, c *clock) {
	ctx := t.Context()
	if now := got[time.Time](t)(s.Now(ctx)); !now.Equal(Begin) {
		t.Errorf("the store's time is %v", now)
	}
	for _, id := range []string{"x", "y"} {
		NewTrace(t, id).Append(s, Start("w", "in_process")...)
	}
	both := []string{"x", "y"}
	must(t, s.Renew(ctx, "p", 10*time.Second))
	must(t, s.Renew(ctx, "q", 15*time.Second))
	wantOwner(t, s, "x", "", 0)
	wantClaim(t, s, "p", both, both...)
	wantOwner(t, s, "x", "p", 10)
	c.pass(4 * time.Second)
	wantOwner(t, s, "y", "p", 6)
	must(t, s.Renew(ctx, "p", 10*time.Second))
	wantOwner(t, s, "x", "p", 10)
	wantOwner(t, s, "y", "p", 10)
	c.pass(10*time.Second - time.Millisecond)
	wantClaim(t, s, "q", both)
	wantOwner(t, s, "x", "p", 0.001)
	c.pass(time.Millisecond)
	wantOwner(t, s, "x", "p", justEnded)
	c.pass(500 * time.Millisecond)
	wantOwner(t, s, "x", "p", -0.5)
	wantClaim(t, s, "q", []string{"x"}, "x")
	// An expired lease begins again; runs claimed by another process stay with that process.
	must(t, s.Renew(ctx, "p", 10*time.Second))
	wantOwner(t, s, "x", "q", 0.5)
	wantOwner(t, s, "y", "p", 10)
	wantOwned(t, s, "p", map[string]int64{"y": 5})
	wantOwned(t, s, "q", map[string]int64{"x": 5})
	// A renewal may also shorten a lease.
	must(t, s.Renew(ctx, "p", time.Second))
	wantOwner(t, s, "y", "p", 1)
	wantProcesses(t, s, history.Process{Name: "p", Left: time.Second, Runs: 1}, history.Process{Name: "q", Left: 500 * time.Millisecond, Runs: 1})
	must(t, s.Release(ctx, "p"))
	wantProcesses(t, s, history.Process{Name: "q", Left: 500 * time.Millisecond, Runs: 1})
	c.pass(100 * time.Millisecond)
	must(t, s.Release(ctx, "p")) // a second time, which changes nothing
	must(t, s.Release(ctx, "nobody"))
	wantOwner(t, s, "y", "p", -0.1)
	wantOwned(t, s, "p", map[string]int64{"y": 5})
	wantClaim(t, s, "q", both, both...)
	wantOwned(t, s, "p", nil)
	// A fraction of a millisecond counts as a whole one.
	must(t, s.Renew(ctx, "q", time.Microsecond))
	wantOwner(t, s, "y", "q", 0.001)
}

func claims(t *testing.T, s history.Store, c *clock) {
	ctx := t.Context()
	for _, id := range []string{"a", "b", "c"} {
		NewTrace(t, id).Append(s, Start("w", "host_mediated")...)
	}
	NewTrace(t, "ended").Append(s, lines(Start("w", "in_process"), End())...)
	must(t, s.Renew(ctx, "p", 10*time.Second))
	must(t, s.Renew(ctx, "q", 20*time.Second))
	wantClaim(t, s, "p", nil)
	wantClaim(t, s, "p", []string{"c", "unknown", "a", "ended"}, "c", "a")
	wantClaim(t, s, "q", []string{"a", "b", "c"}, "b")
	wantClaim(t, s, "p", []string{"a", "b", "c"}, "a", "c") // runs that it already owns count
	// A process gives up only runs that it owns.
	must(t, s.Disown(ctx, "p", "a", "b", "unknown", "ended"))
	c.pass(time.Second)
	wantOwner(t, s, "a", "", -1)
	wantOwner(t, s, "b", "q", 19)
	wantOwner(t, s, "ended", "", 0)
	wantOwned(t, s, "p", map[string]int64{"c": 5})
	wantClaim(t, s, "q", []string{"a", "c"}, "a")
	wantOwner(t, s, "a", "q", 19)
	// A process without a lease can claim, and any process can claim from it.
	must(t, s.Disown(ctx, "q", "a"))
	wantClaim(t, s, "r", []string{"a"}, "a")
	wantOwner(t, s, "a", "r", 0)
	wantClaim(t, s, "q", []string{"a"}, "a")
}

// batchOwners: an append claims the run, keeps it, gives it up or ends it.
func batchOwners(t *testing.T, s history.Store, c *clock) {
	ctx := t.Context()
	x := NewTrace(t, "x")
	with := func(owner string, disown bool, lines ...string) {
		t.Helper()
		b := x.Batch(lines...)
		b.Owner, b.Disown = owner, disown
		must(t, s.Append(ctx, b))
	}
	must(t, s.Renew(ctx, "p", 10*time.Second))
	must(t, s.Renew(ctx, "q", 60*time.Second))
	with("p", false, Start("w", "in_process")...)
	wantOwner(t, s, "x", "p", 10)
	c.pass(time.Second)
	with("p", false, Node("begin", "a")...) // renews nothing
	wantOwner(t, s, "x", "p", 9)
	with("", false, "C ScheduleNode b") // regardless of the owner
	wantOwner(t, s, "x", "p", 9)
	c.pass(10 * time.Second)
	with("p", false, "C ScheduleNode b") // unclaimed
	wantOwner(t, s, "x", "p", -1)
	with("q", false, "C ScheduleNode c")
	wantOwner(t, s, "x", "q", 49)
	with("q", true, "C ScheduleNode d")
	c.pass(time.Second)
	wantOwner(t, s, "x", "", -1)
	wantOwned(t, s, "q", nil)
	with("q", true, "C ScheduleNode e") // not owned
	wantOwner(t, s, "x", "", justEnded)
	with("q", false, "C ScheduleNode f")
	wantOwned(t, s, "q", map[string]int64{"x": x.Execution.Seq})
	with("q", false, End()...)
	wantOwner(t, s, "x", "", 0)
	wantOwned(t, s, "q", nil)
	with("q", false, "C ScheduleNode g") // a run that continues after its end
	x = NewTrace(t, "at once")
	with("q", false, lines(Start("w", "in_process"), End())...)
	x = NewTrace(t, "by another")
	with("q", false, Start("w", "in_process")...)
	with("", false, "E ExecutionCancelled")
	wantOwner(t, s, "by another", "", 0)
	wantOwned(t, s, "q", nil)
}

// refusedOwners: an append is refused as a whole if another process owns the run, and a conflict is reported first.
func refusedOwners(t *testing.T, s history.Store, c *clock) {
	ctx := t.Context()
	must(t, s.Renew(ctx, "p", 10*time.Second))
	must(t, s.Renew(ctx, "q", 60*time.Second))
	x := NewTrace(t, "x")
	x.Append(s, Start("w", "in_process")...)
	wantClaim(t, s, "p", []string{"x"}, "x")
	before := describeAll(t, s, "x")
	aside := *x
	refused := aside.Batch("C ScheduleNode b", "E TimerStarted w")
	fill(&refused)
	refused.Owner = "q"
	disowning := refused
	disowning.Disown = true
	aside = *x
	ending := aside.Batch(End()...)
	ending.Owner = "q"
	for what, b := range map[string]history.Batch{"appends": refused, "disowns": disowning, "ends": ending} {
		if err := s.Append(ctx, b); !errors.Is(err, problem.LeaseHeld) {
			t.Errorf("q %s a run of p: %v", what, err)
		}
		b.ExpectedSeq, b.Execution.Seq = 0, int64(len(b.Records))
		if err := s.Append(ctx, b); !errors.Is(err, problem.HistoryConflict) {
			t.Errorf("q %s a run of p behind another record: %v", what, err)
		}
	}
	if after := describeAll(t, s, "x"); after != before {
		t.Errorf("a refused batch changed\n%s\nto\n%s", before, after)
	}
	wantRefusal(t, problem.DefinitionNotFound)(s.Definition(ctx, "h"))
	// The former owner returns after another process has claimed the run.
	c.pass(10 * time.Second)
	wantClaim(t, s, "q", []string{"x"}, "x")
	must(t, s.Renew(ctx, "p", 10*time.Second))
	refused.Owner, disowning.Owner, ending.Owner = "p", "p", "p"
	for what, b := range map[string]history.Batch{"appends": refused, "disowns": disowning, "ends": ending} {
		if err := s.Append(ctx, b); !errors.Is(err, problem.LeaseHeld) {
			t.Errorf("p %s the run that it has lost: %v", what, err)
		}
	}
	refused.Owner = "q"
	must(t, s.Append(ctx, refused))
}

func departedProcesses(t *testing.T, s history.Store, c *clock) {
	ctx := t.Context()
	wantDeparted(t, s)
	for _, id := range []string{"a", "b", "c", "host"} {
		NewTrace(t, id).Append(s, Start("w", "in_process")...)
	}
	NewTrace(t, "rests").Append(s, lines(Start("w", "host_mediated"), Node("begin", "t"))...)
	for i, process := range []string{"p", "q", "idle"} {
		must(t, s.Renew(ctx, process, time.Duration(10*(i+1))*time.Second))
	}
	wantClaim(t, s, "p", []string{"rests"}, "rests")
	wantClaim(t, s, "q", []string{"a", "b"}, "a", "b")
	wantClaim(t, s, "never renewed", []string{"c"}, "c")
	wantDeparted(t, s, "never renewed")
	must(t, s.Disown(ctx, "never renewed", "c"))
	wantDeparted(t, s)
	c.pass(10 * time.Second)
	wantDeparted(t, s, "p") // whether its runs need a driver or not
	must(t, s.Release(ctx, "q"))
	must(t, s.Release(ctx, "idle"))
	wantDeparted(t, s, "p", "q")
	must(t, s.Renew(ctx, "r", time.Hour))
	wantDeparted(t, s, "p", "q") // until the runs are claimed
	wantClaim(t, s, "r", []string{"a", "b"}, "a", "b")
	wantDeparted(t, s, "p")
	must(t, s.Renew(ctx, "p", time.Second))
	wantDeparted(t, s)
	c.pass(time.Second)
	wantDeparted(t, s, "p")
	x := NewTrace(t, "rests")
	x.Execution = got[history.Execution](t)(s.Execution(ctx, "rests"))
	x.Append(s, "E ExecutionCancelled")
	wantDeparted(t, s)
}

// overviews: one read answers what a process repeats.
func overviews(t *testing.T, s history.Store, c *clock) {
	want := func(process string, w history.Overview) {
		t.Helper()
		w.Now = c.now()
		o := overview(t, s, process)
		if o.Ready && !w.Unowned { // a store may count ready runs
			o.Unowned = false
		}
		if !reflect.DeepEqual(o, w) {
			t.Errorf("%q sees %+v, want %+v", process, o, w)
		}
	}
	want("", history.Overview{})
	must(t, s.Renew(t.Context(), "q", time.Minute))
	must(t, s.Renew(t.Context(), "p,\"\x00", time.Minute))
	live := []string{"p,\"\x00", "q"}
	want("p", history.Overview{Live: live})
	x := NewTrace(t, "x")
	b := x.Batch(Start("w", "in_process")...)
	b.SetTimers, b.Timers = true, []history.Timer{{Key: "a", Due: Begin.Add(time.Hour)}, {Key: "b", Due: Begin.Add(time.Minute)}}
	must(t, s.Append(t.Context(), b))
	seen := history.Overview{Live: live, Unowned: true, NextTimer: Begin.Add(time.Minute)}
	want("q", seen)
	wantClaim(t, s, "q", []string{"x"}, "x")
	seen.Unowned = false
	want("p", seen)
	seen.Owns = true
	want("q", seen)
	if _, ok := history.As[history.Limiter](s); ok {
		setLimits(t, s, []history.SharedLimit{{Class: "c", Concurrent: 1}})
		seen.Limited = true
		want("q", seen)
		setLimits(t, s, []history.SharedLimit{{Class: "c"}})
		seen.Limited = false
		want("q", seen)
	}
	if _, ok := history.As[history.Queue](s); ok {
		beginReady(t, s, 0, "t", "y")
		seen.Ready = true
		want("q", seen)
		wantReadyClaim(t, s, "q", 1, "y")
		seen.Ready = false
		want("q", seen)
	}
	c.pass(time.Minute)
	seen.Live, seen.Departed = nil, []string{"q"}
	want("q", seen)
	must(t, s.Renew(t.Context(), "r", time.Minute))
	wantClaim(t, s, "r", []string{"x"}, "x")
	x.Append(s, End()...)
	seen.Live, seen.NextTimer, seen.Owns = []string{"r"}, time.Time{}, false
	if seen.Departed = nil; len(overview(t, s, "q").Departed) > 0 { // y, in a store with a queue
		seen.Departed, seen.Owns = []string{"q"}, true
	}
	want("q", seen)
}

func unowned(t *testing.T, s history.Store, c *clock) {
	ctx := t.Context()
	activity := []string{"C ScheduleNode t", `E ActivityRequested t {"attempt":1}`}
	order := []string{"a-leased", "d-idle", "c-activity", "b-leased", "host", "signal", "timer", "ended", "other", "other-asked"}
	runs := map[string][]string{
		"c-activity":  lines(Start("w", "in_process"), activity),
		"host":        lines(Start("w", "host_mediated"), Node("begin", "t")),
		"signal":      lines(Start("w", "in_process"), []string{`E SignalWaitStarted s {"signalName":"go"}`}),
		"timer":       lines(Start("w", "in_process"), []string{"E TimerStarted w"}),
		"ended":       lines(Start("w", "in_process"), End()),
		"other":       {"E ExecutionStarted", "C ScheduleNode a"},
		"other-asked": {"E ExecutionStarted", "E ActivityRequested a"},
	}
	must(t, s.Renew(ctx, "p", time.Minute))
	must(t, s.Renew(ctx, "q", time.Hour))
	for i, id := range order {
		x := NewTrace(t, id)
		x.Now = Begin.Add(time.Duration(i) * time.Second)
		if runs[id] == nil {
			runs[id] = Start("w", "in_process")
		}
		b := x.Batch(runs[id]...)
		switch id {
		case "a-leased", "host":
			b.Owner = "p"
		case "b-leased":
			b.Owner = "q"
		}
		must(t, s.Append(ctx, b))
	}
	c.pass(time.Minute - time.Millisecond)
	wantUnowned(t, s, 0, "d-idle", "c-activity")
	c.pass(time.Millisecond)
	wantUnowned(t, s, 0, "d-idle", "c-activity", "a-leased")
	wantUnowned(t, s, 2, "d-idle", "c-activity")
	c.pass(time.Minute)
	must(t, s.Release(ctx, "q"))
	wantUnowned(t, s, 0, "d-idle", "c-activity", "a-leased", "b-leased")
	// A process that cannot drive a claimed run disowns it; then other runs come first.
	must(t, s.Renew(ctx, "r", time.Minute))
	wantClaim(t, s, "r", []string{"d-idle"}, "d-idle")
	wantUnowned(t, s, 1, "c-activity")
	c.pass(time.Second)
	must(t, s.Disown(ctx, "r", "d-idle"))
	wantUnowned(t, s, 0, "c-activity", "a-leased", "b-leased", "d-idle")
	c.pass(time.Second)
	must(t, s.Renew(ctx, "p", time.Minute))
	wantUnowned(t, s, 0, "c-activity", "b-leased", "d-idle")
	// A parent needs a driver only if its subworkflow never began or has ended.
	NewTrace(t, "parent").Append(s, lines(Start("w", "in_process"), []string{
		`E SubworkflowStarted v {"workflowRef":"w","parentExecutionId":"parent","childExecutionId":"parent:sub:v"}`,
	})...)
	wantUnowned(t, s, 1, "parent")
	NewTrace(t, "parent:sub:v").Append(s, lines(Start("c", "host_mediated"), Node("begin", "t"))...)
	wantUnowned(t, s, 1, "c-activity")
}

// orphanedParents: a run that waits for a subworkflow is an orphan if no process will report the end to it.
func orphanedParents(t *testing.T, s history.Store) {
	for _, id := range []string{"p1", "p2", "p3"} {
		NewTrace(t, id).Append(s, lines(Start("w", "in_process"), []string{
			fmt.Sprintf(`E SubworkflowStarted v {"workflowRef":"w","parentExecutionId":%q,"childExecutionId":%q}`, id, id+":sub:v"),
		})...)
	}
	NewTrace(t, "p2:sub:v").Append(s, lines(Start("c", "host_mediated"), Node("begin", "t"))...)
	NewTrace(t, "p3:sub:v").Append(s, lines(Start("c", "in_process"), End())...)
	wantUnowned(t, s, 0, "p1", "p3") // the child of p1 never began, that of p3 has ended
}

// orphanedChildren: a subworkflow is an orphan if its parent ended before it, regardless of its waits.
func orphanedChildren(t *testing.T, s history.Store) {
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
	wantUnowned(t, s, 0, "closed:sub:v", "open") // one outlives its parent, the other stopped between two nodes
}
