package historytest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// Agreeable is a store with all that Agree compares.
type Agreeable interface {
	history.Store
	history.Queue
	history.Pruner
	history.Verifier
}

// Agreement does the same things to several stores that share a database and to the store in memory, which is simple enough
// to be believed, and compares their answers. The stores and the actions are chosen at random.
type Agreement struct {
	// Open opens another store of the database, whose clock is now.
	Open func(now func() time.Time, o Opening) Agreeable
	// Hold makes the appends of a store wait until release is called, so that they share a commit; queued waits until n of them wait. Without
	// Hold they share one if it so happens.
	Hold func(s Agreeable) (queued func(n int), release func())
	// StepsBack says that the clock may also step back: the store does not keep the newest time that it has seen.
	StepsBack bool
	// Seed selects the actions, Actions is their number.
	Seed    uint64
	Actions int
}

// Opening says how Agreement.Open opens a store: as usual, with the smallest sizes, so that every value is stored short, or to read.
type Opening int

// The openings of a store.
const (
	Usual Opening = iota
	Smallest
	ReadOnly
)

// Run fails the test if the stores do not agree.
func (o Agreement) Run(t *testing.T) {
	a := &agreement{Agreement: o, t: t, rand: rand.New(rand.NewPCG(o.Seed, 11)), now: Begin, runs: map[string]*agreed{}}
	a.memory = historymem.NewWith(historymem.Options{Now: a.clock})
	for i := range 3 {
		a.stores = append(a.stores, a.open(i))
	}
	for range o.Actions {
		a.act()
		if t.Failed() {
			return
		}
	}
	a.checkAll()
}

type agreement struct {
	Agreement
	t      *testing.T
	rand   *rand.Rand
	stores []Agreeable
	memory *historymem.Store
	now    time.Time
	runs   map[string]*agreed
	ids    []string
}

// agreed is a run as it ought to be.
type agreed struct {
	Trace
	mode  string
	step  int
	state map[string]any
	prior history.Prior
	// before is the run some appends ago, as a process takes it that was overtaken.
	before Trace
}

func (a *agreement) open(i int) Agreeable {
	if i == 2 {
		return a.Agreement.Open(a.clock, Smallest)
	}
	return a.Agreement.Open(a.clock, Usual)
}

func (a *agreement) clock() time.Time { return a.now }

func (a *agreement) store() Agreeable { return a.stores[a.rand.IntN(len(a.stores))] }

// run gives one of a few runs, a new one if it does not exist.
func (a *agreement) run() *agreed {
	id := fmt.Sprintf("r%d", a.rand.IntN(6))
	x := a.runs[id]
	if x == nil {
		x = &agreed{Trace: *NewTrace(a.t, id)}
		x.mode = []string{"in_process", "in_process", "host_mediated"}[a.rand.IntN(3)]
		x.before = x.Trace
		a.runs[id] = x
		a.ids = append(a.ids, id)
	}
	return x
}

// tick moves the clock: mostly not at all, now and then by a tenth of a second or more, or back.
func (a *agreement) tick() time.Time {
	switch a.rand.IntN(12) {
	case 0:
		a.now = a.now.Add(time.Duration(a.rand.IntN(300)) * time.Millisecond)
	case 1:
		if a.StepsBack {
			a.now = a.now.Add(-time.Duration(a.rand.IntN(120)) * time.Millisecond)
		}
	case 2, 3:
		a.now = a.now.Add(time.Millisecond)
	}
	return a.now
}

// next makes what the run goes on with.
func (a *agreement) next(x *agreed) history.Batch {
	x.Now = a.tick()
	if x.Execution.Seq == 0 {
		return x.Batch(append(Start("w"+x.Execution.ID[1:2], x.mode), "C ScheduleNode n0", "E NodeScheduled n0",
			fmt.Sprintf(`E ActivityRequested n0 {"nodeType":"step","attempt":1,"activityExecutionMode":%q}`, x.mode))...)
	}
	done, after := fmt.Sprintf("n%d", x.step), fmt.Sprintf("n%d", x.step+1)
	x.step++
	request := fmt.Sprintf(`E ActivityRequested %s {"nodeType":"step","attempt":1,"activityExecutionMode":%q}`, after, x.mode)
	completed := fmt.Sprintf(`E ActivityCompleted %s {"nodeType":"step","result":{"r":%d}}`, done, x.step)
	switch a.rand.IntN(14) {
	case 0:
		return x.Batch(completed, `E TimerStarted `+after+` {"kind":"duration","dueAt":"2030-01-01T00:00:00.000Z"}`)
	case 1:
		return x.Batch(completed, "C RaiseInterrupt "+after, "E InterruptRaised "+after)
	case 2:
		return x.Batch(completed, "E ExecutionCompleted")
	case 3:
		return x.Batch("C CancelExecution", `E ExecutionCancelled {"reason":"enough"}`)
	}
	b := x.Batch(completed, fmt.Sprintf(`C CompleteNode %s {"output":{"r":%d}}`, done, x.step), "E StateUpdated "+done+` {"state":{}}`,
		"C ScheduleNode "+after, "E NodeScheduled "+after, request)
	if x.state == nil || a.rand.IntN(10) == 0 {
		size := []int{1, 500, 5000, 70_000}[a.rand.IntN(4)]
		x.state = map[string]any{"text": strings.Repeat(string(rune('a'+a.rand.IntN(26))), size)}
	} else {
		x.state = map[string]any{"text": x.state["text"], "n": float64(x.step)}
	}
	b.Records[2].Payload.State = x.state
	if a.rand.IntN(8) > 0 {
		b.Prior = x.prior
	}
	x.prior = history.Prior{Seq: b.ExpectedSeq + 3, State: x.state}
	return b
}

// adorn adds what goes along with records.
func (a *agreement) adorn(b *history.Batch) {
	if a.rand.IntN(12) == 0 {
		b.Position = fmt.Appendf(nil, "at %d", b.Execution.Seq)
	}
	if a.rand.IntN(6) == 0 {
		b.SetTimers = true
		if a.rand.IntN(2) == 0 {
			b.Timers = []history.Timer{{ExecutionID: b.ExecutionID, Key: "k", Due: a.now.Add(time.Duration(a.rand.IntN(500)) * time.Millisecond)}}
		}
	}
	switch owner := fmt.Sprintf("owner %d", a.rand.IntN(2)); a.rand.IntN(5) {
	case 0, 1:
		b.Owner = owner
	case 2:
		b.Owner, b.Disown = owner, true
	}
	if (b.Owner == "" || b.Disown) && a.rand.IntN(2) == 0 {
		r := a.ready()
		b.Ready = &r
	}
}

// ready gives one of a few places among the ready runs.
func (a *agreement) ready() history.Ready {
	return history.Ready{
		Lane: history.Lane{Queue: "default", Needs: fmt.Sprint("step:", a.rand.IntN(3))}, Priority: a.rand.IntN(2), Tenant: fmt.Sprint("t", a.rand.IntN(2)),
	}
}

// both appends a batch to the file and to the memory, and reports whether it was taken.
func (a *agreement) both(s Agreeable, b history.Batch) bool {
	a.t.Helper()
	err := s.Append(a.t.Context(), b)
	b.Bytes = nil
	want := a.memory.Append(a.t.Context(), b)
	a.same("append", err, want)
	return want == nil
}

func (a *agreement) same(what string, err, want error) {
	a.t.Helper()
	e, _ := problem.As(err)
	w, _ := problem.As(want)
	if (err == nil) != (want == nil) || err != nil && e.Code != w.Code {
		a.t.Fatalf("%s gives %v, in memory %v", what, err, want)
	}
}

// StepLines are the records, as for Trace.Batch, of one activity of a run in process and the request of the next one.
func StepLines(i int) []string {
	done, next := fmt.Sprintf("n%d", i), fmt.Sprintf("n%d", i+1)
	return []string{
		fmt.Sprintf(`E ActivityCompleted %s {"nodeType":"step","result":{"r":%d}}`, done, i),
		fmt.Sprintf(`C CompleteNode %s {"output":{"r":%d}}`, done, i),
		fmt.Sprintf(`E StateUpdated %s {"state":{"r":%d}}`, done, i),
		"C ScheduleNode " + next,
		"E NodeScheduled " + next,
		fmt.Sprintf(`E ActivityRequested %s {"nodeType":"step","attempt":1}`, next),
	}
}

func (a *agreement) act() {
	a.t.Helper()
	switch x := a.run(); a.rand.IntN(20) {
	case 0: // a process that was overtaken, or one that takes the run for longer than it is
		stale := x.before
		lines := StepLines(x.step)
		if a.rand.IntN(2) == 0 {
			stale = x.Trace
			stale.Batch("C ScheduleNode ahead")
			if a.rand.IntN(2) == 0 {
				lines = []string{"E ExecutionCompleted"}
			}
		}
		if stale.Execution.Seq == x.Execution.Seq {
			return
		}
		b := stale.Batch(lines...)
		b.Bytes = nil
		a.both(a.store(), b)
	case 2:
		i := a.rand.IntN(len(a.stores))
		a.stores[i] = a.open(i) // the one before stays open: a process that does nothing any more
	case 3:
		a.group()
	case 4:
		a.prune()
	case 5:
		a.own(x.Execution.ID)
	case 6:
		if x.Execution.Seq > 0 && !x.Execution.Phase.Terminal() {
			b := history.Batch{ExecutionID: x.Execution.ID, ExpectedSeq: x.Execution.Seq, Execution: x.Execution, SetTimers: true}
			b.Timers = []history.Timer{{ExecutionID: b.ExecutionID, Key: "moved", Due: a.now.Add(time.Second)}}
			a.both(a.store(), b)
		}
	case 7:
		a.verify(a.store(), a.rand.IntN(2) == 0)
	case 8, 9:
		a.check(x.Execution.ID)
	case 10, 11:
		a.checkList()
	default: // one process drives the run for a while
		s := a.store()
		for range 1 + a.rand.IntN(25) {
			if x.Execution.Phase.Terminal() || !a.drive(s, x) {
				break
			}
		}
	}
}

// own changes and compares who owns what.
func (a *agreement) own(id string) {
	ctx := a.t.Context()
	owner, s := fmt.Sprintf("owner %d", a.rand.IntN(2)), a.store()
	switch a.rand.IntN(8) {
	case 0, 1:
		ttl := time.Duration(a.rand.IntN(100)) * time.Millisecond
		a.same("the renewal", s.Renew(ctx, owner, ttl), a.memory.Renew(ctx, owner, ttl))
	case 2:
		a.same("the release", s.Release(ctx, owner), a.memory.Release(ctx, owner))
	case 3:
		claimed, err := s.Claim(ctx, owner, "r0", id, "r1")
		want, wantErr := a.memory.Claim(ctx, owner, "r0", id, "r1")
		if a.same("the claim", err, wantErr); !slices.Equal(claimed, want) {
			a.t.Fatalf("%s has claimed %v, in memory %v", owner, claimed, want)
		}
	case 4:
		a.same("the runs given up", s.Disown(ctx, owner, id, "r0"), a.memory.Disown(ctx, owner, id, "r0"))
	case 5:
		offers := []history.Offer{{ExecutionID: id, Ready: a.ready()}, {ExecutionID: "r0", Ready: a.ready()}, {ExecutionID: "r1", Ready: a.ready()}}
		a.same("the offer", s.Offer(ctx, owner, offers...), a.memory.Offer(ctx, owner, offers...))
	case 6, 7:
		unserved := fmt.Sprint("step:", a.rand.IntN(4))
		claim := history.ReadyClaim{
			Process: owner, Serves: func(l history.Lane) bool { return l.Needs != unserved }, Limit: 1 + a.rand.IntN(3), Oldest: a.rand.IntN(3) == 0,
		}
		claimed, err := s.ClaimReady(ctx, claim)
		want, wantErr := a.memory.ClaimReady(ctx, claim)
		if a.same("the claim of ready runs", err, wantErr); !slices.Equal(claimed, want) {
			a.t.Fatalf("%s has claimed the ready runs %v, in memory %v", owner, claimed, want)
		}
	}
	a.checkOwners(a.store(), id, owner)
}

func (a *agreement) checkOwners(s Agreeable, id, process string) {
	ctx := a.t.Context()
	describe := func(s history.Queue) string {
		o, err := s.Owner(ctx, id)
		owned, err2 := s.Owned(ctx, process)
		seen, err3 := s.Overview(ctx, process)
		seen.Now, seen.Unowned = time.Time{}, false // a store may be less exact about these
		unowned, err4 := s.Unowned(ctx, 0)
		slices.Sort(unowned) // by another time where a row lags
		lanes, err5 := s.Lanes(ctx)
		place, ok, err6 := s.Place(ctx, id)
		return fmt.Sprintf("%v %v %+v %v %+v %+v %t %v", o, owned, seen, unowned, lanes, place, ok, errors.Join(err, err2, err3, err4, err5, err6))
	}
	if got, want := describe(s), describe(a.memory); got != want {
		a.t.Fatalf("owners: %s, in memory %s", got, want)
	}
}

// drive appends what the run goes on with.
func (a *agreement) drive(s Agreeable, x *agreed) bool {
	saved := *x
	b := a.next(x)
	a.adorn(&b)
	if !a.both(s, b) {
		*x = saved
		return false
	}
	if a.rand.IntN(3) == 0 {
		x.before = saved.Trace
	}
	return true
}

// group appends to several runs in one transaction, with one append among them that fails.
func (a *agreement) group() {
	s := a.store()
	queued, release := func(int) {}, func() {}
	if a.Hold != nil {
		queued, release = a.Hold(s)
	}
	var wg sync.WaitGroup
	type write struct {
		x     *agreed
		saved agreed
		batch history.Batch
		err   error
	}
	var writes []*write
	for _, id := range a.ids {
		x := a.runs[id]
		if x.Execution.Phase.Terminal() || a.Hold == nil && x.Execution.Seq == 0 { // the order of new runs counts
			continue
		}
		w := &write{x: x, saved: *x}
		if len(writes) == 1 && x.before.Execution.Seq < x.Execution.Seq {
			stale := x.before
			w.batch = stale.Batch(StepLines(0)...)
			w.batch.Bytes = nil
		} else {
			w.batch = a.next(x)
		}
		writes = append(writes, w)
	}
	for i, w := range writes {
		wg.Go(func() { w.err = s.Append(a.t.Context(), w.batch) })
		queued(i + 1)
	}
	release()
	wg.Wait()
	for _, w := range writes {
		b := w.batch
		b.Bytes = nil
		want := a.memory.Append(a.t.Context(), b)
		a.same("one of a group", w.err, want)
		if want != nil {
			*w.x = w.saved
		}
	}
}

// prune deletes runs that have ended. Their ids are used again.
func (a *agreement) prune() {
	q := history.PruneQuery{Limit: 10}
	page, err := a.store().Prune(a.t.Context(), q)
	want, wantErr := a.memory.Prune(a.t.Context(), q)
	a.same("gc", err, wantErr)
	ids := func(p history.PrunePage) (out []string) {
		for _, t := range p.Trees {
			out = append(out, t.ExecutionID)
		}
		slices.Sort(out)
		return out
	}
	if !slices.Equal(ids(page), ids(want)) {
		a.t.Fatalf("gc deleted %q, in memory %q", ids(page), ids(want))
	}
	for _, id := range ids(want) {
		delete(a.runs, id)
		a.ids = slices.DeleteFunc(a.ids, func(other string) bool { return other == id })
	}
}

func (a *agreement) check(id string) {
	a.t.Helper()
	s, x := a.store(), a.runs[id]
	got, err := s.Execution(a.t.Context(), id)
	want, wantErr := a.memory.Execution(a.t.Context(), id)
	a.same("the run", err, wantErr)
	if err != nil {
		return
	}
	if string(got.AppendText(nil)) != string(want.AppendText(nil)) || got.Bytes != x.Execution.Bytes || !got.UpdatedAt.Equal(want.UpdatedAt) {
		a.t.Fatalf("the run is\n%s with %d bytes, want\n%s with %d", got.AppendText(nil), got.Bytes, want.AppendText(nil), x.Execution.Bytes)
	}
	from := 1 + a.rand.Int64N(want.Seq)
	records, err := s.Read(a.t.Context(), id, from, 0)
	wanted, wantErr := a.memory.Read(a.t.Context(), id, from, 0)
	if a.same("its records", err, wantErr); len(records) != len(wanted) {
		a.t.Fatalf("%d records from %d on, in memory %d", len(records), from, len(wanted))
	}
	for i := range records {
		if g, w := string(records[i].AppendPayload(nil, id)), string(wanted[i].AppendPayload(nil, id)); g != w || records[i].Seq != wanted[i].Seq {
			a.t.Fatalf("record %d is %.300s, in memory %.300s", records[i].Seq, g, w)
		}
	}
	seq, position, err := s.Position(a.t.Context(), id)
	wantSeq, wantPosition, wantErr := a.memory.Position(a.t.Context(), id)
	if a.same("the position", err, wantErr); seq != wantSeq || string(position) != string(wantPosition) {
		a.t.Fatalf("the position is %d %q, in memory %d %q", seq, position, wantSeq, wantPosition)
	}
}

// checkList compares lists, and what else is found without an id.
func (a *agreement) checkList() {
	a.t.Helper()
	ctx, s := a.t.Context(), a.store()
	if a.rand.IntN(3) == 0 {
		s = a.Agreement.Open(a.clock, ReadOnly)
	}
	q := history.ListQuery{Limit: 1 + a.rand.IntN(4)}
	if a.rand.IntN(2) == 0 {
		q.Phase = history.Phases()[a.rand.IntN(len(history.Phases()))]
	}
	if a.rand.IntN(3) == 0 {
		q.DefinitionName = fmt.Sprintf("w%d", a.rand.IntN(6))
	}
	if a.rand.IntN(3) == 0 {
		q.UpdatedAfter = a.now.Add(-time.Duration(a.rand.IntN(400)) * time.Millisecond)
	}
	if a.rand.IntN(3) == 0 {
		q.UpdatedBefore = a.now.Add(-time.Duration(a.rand.IntN(400)) * time.Millisecond)
	}
	if a.rand.IntN(4) == 0 {
		q.Roots = true
	}
	q.Oldest = a.rand.IntN(2) == 0
	listed := map[string]history.Execution{}
	last := history.Cursor{}
	for pages := 0; ; pages++ {
		page, err := s.List(ctx, q)
		if err != nil {
			a.t.Fatal(err)
		}
		for i := range page.Executions {
			e := page.Executions[i]
			if _, twice := listed[e.ID]; twice {
				a.t.Fatalf("%s is listed twice", e.ID)
			}
			if c := q.CursorOf(&e); len(listed) > 0 && last.Compare(c) >= 0 {
				a.t.Fatalf("%v is listed behind %v", c, last)
			}
			last, listed[e.ID] = q.CursorOf(&e), e
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	q.Cursor = ""
	most := a.rand.IntN(2*len(a.ids) + 1)
	if n, err := s.Count(ctx, q, most); n != min(most, len(listed)) || err != nil {
		a.t.Fatalf("counted %d, %v with at most %d, listed are %d for %+v", n, err, most, len(listed), q)
	}
	for _, id := range a.ids {
		want, err := a.memory.Execution(ctx, id)
		if err != nil {
			continue
		}
		got, there := listed[id]
		delete(listed, id)
		const tenth = 100 * time.Millisecond
		near := func(at time.Time) bool { return !at.IsZero() && want.UpdatedAt.Sub(at).Abs() < tenth }
		if matches := q.Matches(&want); there != matches && !near(q.UpdatedAfter) && !near(q.UpdatedBefore) {
			a.t.Fatalf("%s is listed: %t; it is %s, %q, %v for %+v", id, there, want.Phase, want.DefinitionName, want.UpdatedAt, q)
		}
		if !there {
			continue
		}
		if got.UpdatedAt.Sub(want.UpdatedAt).Abs() >= tenth || got.UpdatedAt.Truncate(tenth) != want.UpdatedAt.Truncate(tenth) {
			a.t.Fatalf("%s is listed as of %v, it is of %v", id, got.UpdatedAt, want.UpdatedAt)
		}
		got.UpdatedAt = want.UpdatedAt
		if string(got.AppendText(nil)) != string(want.AppendText(nil)) || got.Bytes != a.runs[id].Execution.Bytes {
			a.t.Fatalf("%s is listed as\n%s with %d bytes, it is\n%s with %d", id, got.AppendText(nil), got.Bytes, want.AppendText(nil), a.runs[id].Execution.Bytes)
		}
	}
	if len(listed) > 0 {
		a.t.Fatalf("listed too: %v", listed)
	}
	due, err := s.DueTimers(ctx, a.now, 0)
	wantDue, wantErr := a.memory.DueTimers(ctx, a.now, 0)
	byRun := func(x, y history.Timer) int { return strings.Compare(x.ExecutionID, y.ExecutionID) }
	slices.SortFunc(due, byRun)
	slices.SortFunc(wantDue, byRun)
	if errors.Join(err, wantErr) != nil || len(due)+len(wantDue) > 0 && !reflect.DeepEqual(due, wantDue) {
		a.t.Fatalf("due are %v, in memory %v, %v", due, wantDue, errors.Join(err, wantErr))
	}
}

// checkAll compares everything, also as a new process sees it.
func (a *agreement) checkAll() {
	a.t.Helper()
	a.stores = append(a.stores, a.open(0))
	for _, id := range a.ids {
		for range 3 {
			a.check(id)
		}
	}
	for range 10 {
		a.checkList()
	}
	a.verify(a.stores[3], false)
}

func (a *agreement) verify(s Agreeable, repair bool) {
	a.t.Helper()
	if _, err := s.Verify(a.t.Context(), "", repair, func(f history.Finding) { a.t.Errorf("verify found %+v", f) }); err != nil || a.t.Failed() {
		a.t.Fatal("verify: ", err)
	}
}
