package machine_test

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// The simulation drives random workflows through random schedules, and compares the machine with a naive interpreter that has no
// tokens, held-back scripts or replay. A schedule answers waits in any order, late, twice and wrongly, fires timers early and
// again, changes the mode, rebuilds the run from its whole history or from an older position, and cancels it.
//
// A failure names its seeds. To keep it as a case, add the line to testdata/simulation/seeds.

// simQueued is added to the number of a schedule in which attempts wait for their turn, with some nodes.
const simQueued = 10_000

// TestSimulation tries a sample of schedules, in `make soak` a hundred times as many.
func TestSimulation(t *testing.T) {
	t.Parallel()
	schedules := soak.Setting("SOAK_SCHEDULES", soak.Size(3_000, 2_000, 2_000_000))
	each := soak.Size(12, 12, 40) // a small sample goes through more workflows
	workflows := uint64(schedules / each)
	offset := uint64(soak.Setting("SOAK_SEED", 0))
	// Schedules leave only garbage; collecting it less often halves the time.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var done, inputs, refused, rebuilt, repairs, turns, again, stretches, kept, undone, woken, cut, older atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		workers := uint64(runtime.GOMAXPROCS(0))
		for i := range workers {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for seed := i; seed < workflows && !t.Failed(); seed += workers {
					w := newSimWorkflow(offset + seed)
					prog := compile(t, w.source())
					for n := range uint64(each) {
						if n%4 == 3 {
							n += simQueued
						}
						s := newSchedule(t, w, prog, offset+seed, n)
						s.run()
						done.Add(1)
						inputs.Add(int64(s.inputs))
						refused.Add(int64(s.refusals))
						rebuilt.Add(int64(s.rebuilds))
						repairs.Add(int64(s.repairs))
						turns.Add(int64(s.turns))
						again.Add(int64(s.requeued))
						stretches.Add(int64(s.stretches))
						woken.Add(int64(s.woken))
						kept.Add(int64(s.kept))
						undone.Add(int64(s.undone))
						cut.Add(int64(s.cut))
						older.Add(int64(len(s.older)))
					}
				}
			})
		}
	})
	t.Logf("%d schedules of %d workflows: %d inputs taken, %d refused, %d restarts, %d repairs, %d turns, %d attempts queued again, %d stretches of walks, %d kept signals taken, %d compensations, %d rests of attempts, %d branches cut off by a failure, %d blocks of older releases", done.Load(), workflows, inputs.Load(), refused.Load(), rebuilt.Load(), repairs.Load(), turns.Load(), again.Load(), stretches.Load(), kept.Load(), undone.Load(), woken.Load(), cut.Load(), older.Load())
	if !t.Failed() && (done.Load() < int64(schedules)*9/10 || refused.Load() < done.Load() || rebuilt.Load() < done.Load()/10 || repairs.Load() < done.Load()/100 ||
		turns.Load() < done.Load()/10 || again.Load() < done.Load()/100 || stretches.Load() < done.Load()/4 || woken.Load() < done.Load()/10 || kept.Load() < done.Load()/100 ||
		undone.Load() < done.Load()/20 || cut.Load() < done.Load()/100 || older.Load() < done.Load()/20) {
		t.Error("the schedules exercise too little")
	}
}

// TestSimulationCases runs the seeds that once failed.
func TestSimulationCases(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/simulation/seeds")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cases := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		var seed, n uint64
		if _, err := fmt.Sscan(line, &seed, &n); err != nil {
			if strings.TrimSpace(line) != "" {
				t.Errorf("invalid case %q: %v", line, err)
			}
			continue
		}
		cases++
		t.Run(fmt.Sprintf("%d-%d", seed, n), func(t *testing.T) {
			t.Parallel()
			w := newSimWorkflow(seed)
			newSchedule(t, w, compile(t, w.source()), seed, n).run()
		})
	}
	if cases == 0 {
		t.Error("no cases")
	}
}

// schedule is one run of a workflow.
type schedule struct {
	t       *testing.T
	w       *simWorkflow
	prog    *definition.Program
	world   simWorld
	rng     *rand.Rand
	seed, n uint64
	cfg     machine.Config
	m       *machine.Machine
	now     time.Time
	rows    []history.Record
	// projected is what readers of the history derive from the rows.
	projected history.Execution
	facts     map[string]*history.Record
	stored    []storedPosition
	// past are inputs that were accepted or are obsolete, and must be refused.
	past []machine.Input
	// effects are the keys of all effects so far.
	effects map[string]bool
	// cancelAt is the step at which the run is cancelled, 0 for never.
	cancelAt                   int
	log                        []deed
	inputs, refusals, rebuilds int
	repairs                    int
	// restarted says when attempts were begun that had been requested before; again are those that wait for that.
	restarted       map[string]time.Time
	again           map[string]bool
	turns, requeued int
	// more draws what was added later; early are the payloads of the signals that are kept, by name, and sent counts them.
	more       *rand.Rand
	early      map[string][]object
	sent, kept int
	undone     int
	stretches  int
	// asOlder plays the run as one that an older release began: its blocks do not fail at once. older lists them, by visit.
	asOlder bool
	older   map[string]bool
	cut     int
	// steps counts those that are recorded of each attempt, woken the rests that are over.
	steps map[string]int
	woken int
}

func newSchedule(t *testing.T, w *simWorkflow, prog *definition.Program, seed, n uint64) *schedule {
	s := &schedule{
		t: t, w: w, prog: prog, seed: seed, n: n, world: simWorld{seed*1000 + n, w.pure}, rng: rand.New(rand.NewPCG(seed, n)),
		more: rand.New(rand.NewPCG(seed+n, 79)), early: map[string][]object{},
		now: epoch, facts: map[string]*history.Record{}, effects: map[string]bool{}, steps: map[string]int{}, older: map[string]bool{},
	}
	s.cfg = machine.Config{ExecutionID: "x"}
	if n >= simQueued {
		s.restarted, s.again = map[string]time.Time{}, map[string]bool{}
		s.cfg.Priority = int(n)
		s.cfg.Limits.Queued = func(n *definition.Node) bool { return mix(s.world.seed, n.ID)%3 > 0 }
	}
	if pace := mix(s.world.seed, "pace") % 6; pace < 3 {
		s.cfg.Limits.StretchUnits = []int{1, 900, 2000}[pace] // one, three or five visits
	}
	s.asOlder = n < simQueued && s.cfg.Limits.StretchUnits == 0 && mix(s.world.seed, "older")%2 == 0
	if s.rng.IntN(2) == 0 {
		s.cfg.Mode = machine.HostMediated
	}
	if s.rng.IntN(6) == 0 {
		s.cfg.Branches = machine.Sequential
	}
	if s.rng.IntN(5) == 0 {
		s.cancelAt = s.rng.IntN(12) + 1
	}
	return s
}

// fatalf ends the test and prints everything that helps to find the cause.
func (s *schedule) fatalf(format string, args ...any) {
	s.t.Helper()
	var records []string
	for _, r := range s.rows {
		records = append(records, describe(r))
	}
	var steps []string
	for _, l := range s.log {
		steps = append(steps, fmt.Sprintf("%s: %T %+v", l.what, l.in, l.in))
	}
	s.t.Fatalf("case %d %d: %s\n%s\nsteps:\n%s\nrecords:\n%s", s.seed, s.n, fmt.Sprintf(format, args...), s.w.source(),
		strings.Join(steps, "\n"), strings.Join(records, "\n"))
}

// deed is a step of a schedule, printed only if the schedule fails.
type deed struct {
	what string
	in   machine.Input
}

func (s *schedule) note(what string, in machine.Input) { s.log = append(s.log, deed{what, in}) }

func (s *schedule) run() {
	s.t.Helper()
	s.m = machine.Start(s.prog, s.cfg, object{"log": []any{}}, s.now)
	for step := 1; ; step++ {
		s.drain()
		if s.m.Status().Terminal() {
			break
		}
		if step > 5000 {
			s.fatalf("the run did not end")
		}
		if step == s.cancelAt || s.cancelAt > 0 && step == s.cancelAt+5 && mix(s.world.seed, "again")%3 == 0 {
			s.give(machine.Cancel{Reason: "enough"})
			s.past = s.past[:len(s.past)-1] // another one ends a rollback
			continue
		}
		if s.m.Walking() {
			s.walkOn()
			continue
		}
		if s.cfg.Limits.Queued != nil && s.rng.IntN(3) == 0 {
			s.queue()
			continue
		}
		if s.w.pure || s.more.IntN(4) > 0 || !s.sendEarly() {
			s.step()
		}
	}
	s.finish()
}

func (s *schedule) step() {
	switch s.rng.IntN(20) {
	case 0:
		s.rebuild()
	case 1:
		s.compare()
	case 2, 3, 4:
		s.disturb()
	case 5:
		if !s.w.pure && s.rng.IntN(4) == 0 {
			s.m.SetMode([]machine.Mode{machine.InProcess, machine.HostMediated}[s.rng.IntN(2)])
		}
	default:
		s.advance()
	}
}

// sendEarly sends a signal that a wait keeps and that no wait awaits, if there is such a wait.
func (s *schedule) sendEarly() bool {
	for _, name := range []string{"go", "stop"} {
		if s.prog.Keeps(name) && !s.awaits(name) && len(s.early[name]) < 3 {
			s.sent++
			payload := object{"log": fmt.Sprintf("early %d", s.sent), "m": object{"early": float64(s.sent)}}
			s.early[name] = append(s.early[name], payload)
			s.give(machine.Signal{Name: name, Payload: payload})
			return true
		}
	}
	return false
}

// taken checks that a wait that keeps signals is given the oldest one at once, and that no other wait is given any. due is the wait
// that has just begun and has to take one.
func (s *schedule) taken(r *history.Record, due *string) {
	p := &r.Payload
	at := fmt.Sprintf("%s#%d", p.NodeID, max(p.Visit, 1))
	kept := s.early[p.SignalName]
	switch {
	case r.Name == history.SignalWaitStarted && s.w.nodes[p.NodeID].keep && len(kept) > 0:
		*due = at
	case r.Name == history.SignalReceived && *due == at:
		if text(p.SignalPayload) != text(kept[0]) {
			s.fatalf("%s took %s, want %s", at, text(p.SignalPayload), text(kept[0]))
		}
		*due, s.early[p.SignalName] = "", kept[1:]
		s.kept++
	case r.Name == history.SignalReceived && strings.Contains(text(p.SignalPayload), "early"):
		s.fatalf("%s took a signal that is not kept for it", at)
	}
}

// walkOn goes on with a walk that is made in stretches; from time to time the machine is replaced first.
func (s *schedule) walkOn() {
	s.t.Helper()
	s.stretches++
	if s.rng.IntN(4) == 0 {
		s.replaceWalking()
		return
	}
	for _, in := range []machine.Input{machine.Turn{}, machine.Continue{Key: "walk:other#0"}, machine.Signal{Name: "go"}} {
		if err := s.m.Check(in, s.now); err == nil {
			s.fatalf("accepted %T within a walk", in)
		}
	}
	for _, e := range s.m.InFlight() {
		if w, ok := e.(*machine.WalkEffect); ok {
			s.give(machine.Continue{Key: w.Key()})
			s.past = s.past[:len(s.past)-1] // the same node may be next again
		}
	}
}

// replaceWalking replaces a machine within a walk, which goes on from there.
func (s *schedule) replaceWalking() {
	s.t.Helper()
	rebuilt, err := machine.Replay(s.prog, machine.Config{ExecutionID: "x"}, roundTrip(s.t, s.rows), nil, s.now)
	if last := s.stored[len(s.stored)-1-s.rng.IntN(min(3, len(s.stored)))]; last.data != nil {
		var state map[string]any
		if seq := machine.PositionStateSeq(last.data); seq > 0 {
			state = roundTrip(s.t, s.rows[seq-1:seq])[0].Payload.State
		}
		if rebuilt, err = machine.Restore(s.prog, last.data, state); err == nil {
			rebuilt.SetLimits(0, s.cfg.Limits)
			err = rebuilt.Catchup(roundTrip(s.t, s.rows[last.rows:]), s.now)
		}
	}
	if err != nil {
		s.fatalf("within a walk: %v", err)
	}
	mode := s.m.Config().Mode
	if s.cfg.Limits.Queued != nil {
		s.prepare(rebuilt)
	}
	rebuilt.SetLimits(0, s.cfg.Limits)
	rebuilt.SetMode(mode)
	s.note("replaced within a walk", nil)
	s.m = rebuilt
}

// drain takes the batch after the last input.
func (s *schedule) drain() {
	b := s.m.Ready()
	if len(b.Records) == 0 {
		// A machine that was rebuilt within a walk stands where the history ends.
		b.Effects = slices.DeleteFunc(b.Effects, func(e machine.Effect) bool { _, walk := e.(*machine.WalkEffect); return walk })
	}
	if len(b.Effects) > 0 && len(b.Records) == 0 && !s.again[b.Effects[0].Key()] {
		s.fatalf("effects %v without a record", b.Effects)
	}
	due := ""
	for _, r := range b.Records {
		if s.taken(&r, &due); r.Seq != int64(len(s.rows)+1) {
			s.fatalf("record %s has seq %d, want %d", r.Name, r.Seq, len(s.rows)+1)
		}
		s.rows = append(s.rows, r)
		s.projected.Apply(r)
		p := &s.rows[len(s.rows)-1].Payload
		if p.AgentStep != nil {
			s.stepped(&r)
			continue
		}
		if p.Compensates != "" {
			s.undone++
		}
		attempt := 0
		switch r.Name {
		case history.ActivityFailed, history.ActivityRequested:
			attempt = max(p.Attempt, 1)
		case history.NodeScheduled, history.ActivityCompleted, history.TimerFired, history.SignalReceived, history.InterruptResumed,
			history.SubworkflowStarted, history.SubworkflowCompleted:
		case history.CancelParallelBranch:
			if s.w.nodes[p.NodeID].join == "all" {
				s.cut++
			}
			continue
		case history.CancelExecution:
			s.facts["cancel"] = &r
			continue
		case history.ExecutionCompleted, history.ExecutionFailed, history.ExecutionCancelled:
		default:
			continue
		}
		key := factKey(r.Name, p.NodeID, max(p.Visit, 1), attempt)
		if r.Name.Terminal() {
			key = "end"
		}
		if s.facts[key] != nil {
			s.fatalf("%s is recorded twice", key)
		}
		s.facts[key] = &r
	}
	if due != "" {
		s.fatalf("%s did not take a signal that is kept", due)
	}
	for _, e := range b.Effects {
		if s.again[e.Key()] {
			delete(s.again, e.Key())
			s.restarted[e.Key()] = s.now.Truncate(time.Millisecond)
		} else if _, walk := e.(*machine.WalkEffect); s.effects[e.Key()] && !walk {
			s.fatalf("effect %s twice", e.Key())
		}
		s.effects[e.Key()] = true
		if _, walk := e.(*machine.WalkEffect); !walk {
			s.checkFound(e.Base())
		}
		if a, ok := e.(*machine.ActivityEffect); ok {
			var want object
			if f := s.facts[factKey(history.ActivityFailed, a.NodeID, a.Visit, a.Attempt-1)]; f != nil {
				want = f.Payload.Repair
			}
			if text(a.Repair) != text(want) {
				s.fatalf("effect %s repairs %s, want %s", e.Key(), text(a.Repair), text(want))
			}
			if want != nil {
				s.repairs++
			}
		}
	}
	for _, key := range b.Abandoned {
		s.past = append(s.past, machine.Outcome{Key: key, OK: true}, machine.ChildEnded{Key: key, Status: machine.Completed})
	}
	if !s.m.Status().Terminal() {
		s.makeOlder(len(s.rows) - len(b.Records))
		s.compareProjection()
		s.stored = append(s.stored, storedPosition{len(s.rows), nil})
		if s.rng.IntN(5) == 0 {
			s.stored[len(s.stored)-1].data = s.m.Position()
		}
	}
}

// makeOlder turns the blocks that have begun since a number of records into those of an older release, unless one of their branches has
// failed already.
func (s *schedule) makeOlder(since int) {
	if !s.asOlder {
		return
	}
	rows, begun := slices.Clone(s.rows), []string{}
	for i := since; i < len(rows); i++ {
		if p := &rows[i].Payload; p.FailFast {
			p.FailFast = false
			begun = append(begun, fmt.Sprint(p.NodeID, "#", max(p.Visit, 1)))
		}
	}
	if len(begun) == 0 {
		return
	}
	m, found, err := machine.Prove(s.prog, machine.Config{ExecutionID: "x"}, roundTrip(s.t, rows), nil, s.now)
	if err != nil || len(found) > 0 {
		s.fatalf("as of an older release: %v, %v", found, err)
	}
	if b := m.Ready(); len(b.Records)+len(b.Effects) > 0 || summary(m) != summary(s.m) {
		return
	}
	m.SetMode(s.m.Config().Mode)
	s.rows, s.m = rows, m
	for _, block := range begun {
		s.older[block] = true
	}
}

// compareProjection compares what the run waits for with what the history says. Within a walk the history may not yet say which
// branches were left.
func (s *schedule) compareProjection() {
	s.t.Helper()
	if s.m.Walking() {
		return
	}
	waits := func(n int, at func(int) string) string {
		var all []string
		for i := range n {
			all = append(all, at(i))
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	pending := s.m.Pending()
	want := waits(len(pending), func(i int) string { return fmt.Sprintf("%s#%d", pending[i].NodeID, pending[i].Visit) })
	got := waits(len(s.projected.Waits), func(i int) string {
		return fmt.Sprintf("%s#%d", s.projected.Waits[i].NodeID, max(s.projected.Waits[i].Visit, 1))
	})
	if got != want {
		s.fatalf("the history says that the run waits for %s, it waits for %s", got, want)
	}
}

// give handles an input that must be accepted.
func (s *schedule) give(in machine.Input) {
	s.note("given", in)
	s.inputs++
	if err := handle(s.t, s.m, in, s.now); err != nil {
		s.fatalf("refused %T %+v: %v", in, in, err)
	}
	if _, ok := in.(machine.Turn); ok {
		s.turns++
	}
	s.past = append(s.past, in)
}

// refuse handles an input that must be refused and must change nothing.
func (s *schedule) refuse(why string, in machine.Input) {
	s.note(why, in)
	s.refusals++
	before := summary(s.m)
	err := handle(s.t, s.m, in, s.now)
	if err == nil {
		s.fatalf("%s: accepted %T %+v", why, in, in)
	}
	if _, ok := problem.As(err); !ok {
		s.fatalf("%s: refused without a code: %v", why, err)
	}
	if b := s.m.Ready(); len(b.Records)+len(b.Effects)+len(b.Abandoned) > 0 || b.TimersChanged {
		s.fatalf("%s: the refused %+v has output: %+v", why, in, b)
	}
	if after := summary(s.m); after != before {
		s.fatalf("%s: the refused %+v changed the run\nfrom %s\nto   %s", why, in, before, after)
	}
}

// pick draws a wait.
func (s *schedule) pick() machine.Wait {
	waits := s.m.Pending()
	if len(waits) == 0 {
		s.fatalf("a run that is %s waits for nothing", s.m.Status())
	}
	return waits[s.rng.IntN(len(waits))]
}

// advance ends a wait.
func (s *schedule) advance() {
	wait := s.pick()
	s.now = s.now.Add(time.Duration(s.rng.IntN(40)) * time.Millisecond)
	if !s.w.pure && s.more.IntN(3) == 0 && s.record(wait) || s.asked(wait) {
		return
	}
	if wait.Due.After(s.now) {
		s.now = wait.Due
	}
	if !wait.Deadline.IsZero() && s.rng.IntN(4) == 0 {
		if wait.Deadline.After(s.now) {
			s.now = wait.Deadline
		}
		s.give(machine.TimerFired{Key: "deadline:" + wait.Key})
		return
	}
	s.give(s.answer(wait))
}

func (s *schedule) answer(wait machine.Wait) machine.Input {
	if wait.Queued && wait.Kind != machine.WaitBackoff {
		return machine.Turn{Key: wait.Key}
	}
	switch wait.Kind {
	case machine.WaitActivity, machine.WaitDelegate:
		o := machine.Outcome{Key: wait.Key}
		if wait.Host {
			o = machine.Outcome{
				Host: true, NodeID: wait.NodeID, Span: wait.Span, CorrelationID: wait.CorrelationID, IdempotencyKey: "x:" + wait.Key,
			}
		}
		out := s.world.outcome(wait.NodeID, wait.Visit, wait.Attempt)
		if o.OK = out.ok; out.ok {
			o.Output = output(wait.NodeID, wait.Visit)
		} else {
			o.Error, o.Code, o.Final = "did not work", out.code, out.final && !wait.Host
			if out.repair {
				o.Repair = object{"of": wait.Key}
			}
		}
		return o
	case machine.WaitSignal:
		return machine.Signal{Name: wait.SignalName, Payload: s.signalPayload(wait.SignalName)}
	case machine.WaitInterrupt:
		if wait.Journal != nil {
			return machine.Resume{Key: wait.Key, Payload: object{"ok": true}}
		}
		return machine.Resume{Key: wait.Key, Payload: answerTo(wait.NodeID, wait.Visit)}
	case machine.WaitChild:
		e := machine.ChildEnded{Key: wait.Key, Status: s.world.child(wait.NodeID, wait.Visit)}
		if e.Status == machine.Completed {
			e.FinalState = output(wait.NodeID, wait.Visit)
		} else {
			e.Error, e.Code = "the child did not work", "NO"
		}
		return e
	case machine.WaitTimer:
		if wait.Rests() {
			return machine.TimerFired{Key: fmt.Sprintf("rest:%s/r%d", wait.Key, wait.Journal.Rests)}
		}
		return machine.TimerFired{Key: "timer:" + wait.Key}
	default:
		return machine.TimerFired{Key: "backoff:" + wait.Key}
	}
}

// signalPayload returns the payload for the first wait for the signal, in branch order.
func (s *schedule) signalPayload(name string) object {
	for _, w := range s.m.Pending() {
		if w.Kind == machine.WaitSignal && w.SignalName == name {
			return output(w.NodeID, w.Visit)
		}
	}
	return nil
}

// disturb handles inputs that must be refused.
func (s *schedule) disturb() {
	wait := s.pick()
	switch s.rng.IntN(7) {
	case 0, 1, 2: // again, or too late
		if len(s.past) == 0 {
			return
		}
		in := s.past[s.rng.IntN(len(s.past))]
		if signal, ok := in.(machine.Signal); ok && (s.awaits(signal.Name) || s.prog.Keeps(signal.Name)) {
			return // another visit waits for the same signal
		}
		if turn, ok := in.(machine.Turn); ok && (s.again[turn.Key] || s.steps[turn.Key] > 0) {
			return // it waits for another turn
		}
		s.refuse("repeated", in)
	case 3: // too early
		for _, tm := range s.m.Timers() {
			if tm.Due.After(s.now) {
				s.refuse("early", machine.TimerFired{Key: tm.Key})
			}
		}
	case 4: // for nobody
		s.refuse("unknown", []machine.Input{
			machine.TimerFired{Key: "timer:none#1"}, machine.Outcome{Key: "none#1.1", OK: true}, machine.Outcome{Host: true, NodeID: "none", OK: true},
			machine.ChildEnded{Key: "none#1.1", Status: machine.Completed}, machine.Signal{Name: "none"}, machine.Resume{Key: "none#1", Payload: object{}},
			machine.ChildRefused{Key: "none#1.1", Error: "x"},
		}[s.rng.IntN(7)])
	case 5: // of the wrong form
		switch in := s.answer(wait).(type) {
		case machine.Turn:
			s.refuse("not begun", machine.Outcome{Key: in.Key, OK: true})
			s.refuse("not begun", machine.TaskUpdate{Key: in.Key, TaskID: "t"})
		case machine.Resume:
			in.Payload = object{}
			s.refuse("wrong payload", in)
		case machine.Outcome:
			switch {
			case !in.Host:
				in.Key += "0"
			case in.CorrelationID != "" && in.OK:
				in.CorrelationID = "another"
			default:
				in.IdempotencyKey += "0"
			}
			s.refuse("wrong name", in)
		}
	case 6: // for the other side, or of a parent while a rollback runs
		if len(s.m.Rollbacks()) > 0 {
			s.refuse("by the parent", machine.Cancel{ByParent: true})
		}
		if o, ok := s.answer(wait).(machine.Outcome); ok {
			if o.Host {
				s.refuse("not an executor's", machine.Outcome{Key: wait.Key, OK: true})
			} else {
				s.refuse("not a host's", machine.Outcome{Host: true, NodeID: wait.NodeID, Span: wait.Span, IdempotencyKey: "x:" + wait.Key, OK: true})
			}
		}
	}
}

func (s *schedule) awaits(signal string) bool {
	for _, w := range s.m.Pending() {
		if w.Kind == machine.WaitSignal && w.SignalName == signal {
			return true
		}
	}
	return false
}

// rebuild replaces the machine by one from what is stored: the whole history, or a position and the records after it.
func (s *schedule) rebuild() {
	s.t.Helper()
	s.rebuilds++
	want := summary(s.m)
	mode := s.m.Config().Mode
	how := "replay"
	rebuilt, found, err := machine.Prove(s.prog, machine.Config{ExecutionID: "x"}, roundTrip(s.t, s.rows), nil, s.now)
	if len(found) > 0 {
		s.fatalf("its own history differs: %s", &found[0])
	}
	if n := 1 + s.inputs*7919%len(s.rows); s.rebuilds%4 == 0 { // not by chance, which kept cases would go another way with
		if _, found, err := machine.Prove(s.prog, machine.Config{ExecutionID: "x"}, roundTrip(s.t, s.rows[:n]), nil, s.now); len(found) > 0 || err != nil {
			s.fatalf("the first %d of %d records of its own history differ: %v, %v", n, len(s.rows), found, err)
		}
	}
	if from := s.stored[max(0, len(s.stored)-1-s.rng.IntN(8))]; from.data != nil {
		how = fmt.Sprintf("restore from %d of %d", from.rows, len(s.rows))
		var state map[string]any
		if seq := machine.PositionStateSeq(from.data); seq > 0 {
			state = roundTrip(s.t, s.rows[seq-1:seq])[0].Payload.State
		}
		if rebuilt, err = machine.Restore(s.prog, from.data, state); err == nil {
			err = rebuilt.Catchup(roundTrip(s.t, s.rows[from.rows:]), s.now)
		}
	}
	s.note(how, nil)
	if err != nil {
		s.fatalf("%s: %v", how, err)
	}
	if s.cfg.Limits.Queued != nil {
		s.prepare(rebuilt)
	}
	if b := rebuilt.Ready(); len(b.Records)+len(b.Effects) > 0 {
		s.fatalf("%s: a rebuilt machine adds %d records, %d effects", how, len(b.Records), len(b.Effects))
	}
	if got := summary(rebuilt); got != want {
		s.fatalf("%s: rebuilt machine differs\nwant %s\ngot  %s", how, want, got)
	}
	rebuilt.SetMode(mode) // which the history knows only of what was requested
	s.m = rebuilt
}

// queue makes an attempt wait that is about to be performed again, or whose back-off is over, as a driver does.
func (s *schedule) queue() {
	wait := s.pick()
	var e machine.Effect
	switch {
	case wait.Kind == machine.WaitBackoff && !wait.Due.After(s.now):
		e = s.m.Queue("backoff:" + wait.Key)
	case wait.Queued:
		return
	case s.rng.IntN(4) == 0:
		e = s.m.Queue(wait.Key)
	}
	if e == nil {
		return
	}
	s.note("queue "+e.Key(), nil)
	s.requeued++
	if wait.Kind != machine.WaitBackoff {
		s.again[wait.Key] = true
	}
	if b := s.m.Ready(); len(b.Records)+len(b.Effects)+len(b.Abandoned) > 0 {
		s.fatalf("%s has output: %+v", e.Key(), b)
	}
}

// prepare does to a rebuilt machine what is not recorded, as a driver does.
func (s *schedule) prepare(rebuilt *machine.Machine) {
	rebuilt.SetLimits(0, s.cfg.Limits)
	initial := rebuilt.Config().Mode
	for _, e := range s.m.InFlight() {
		if turn, ok := e.(*machine.TurnEffect); ok {
			rebuilt.SetMode(machine.InProcess)
			rebuilt.Queue(cmp.Or(turn.Timer, turn.EffectKey))
			rebuilt.SetMode(initial)
		} else if at, ok := s.restarted[e.Key()]; ok {
			rebuilt.Restart(e.Key(), at)
		}
	}
}

func (s *schedule) naive(facts map[string]*history.Record) (*naive, passage) {
	o := &naive{
		w: s.w, world: s.world, facts: facts, sequential: s.cfg.Branches == machine.Sequential, host: s.cfg.Mode == machine.HostMediated,
		visits: map[string]int{}, older: s.older,
	}
	return o, o.run(object{"log": []any{}})
}

// brief returns a state with short texts in place of errors.
func brief(state object) object {
	state = maps.Clone(state)
	if caught, ok := state["caught"].(object); ok {
		state["caught"] = fmt.Sprint(caught["node"], " ", caught["code"])
	}
	for name, v := range state {
		if list, ok := v.([]any); ok && strings.HasPrefix(name, "f_") {
			short := []any{}
			for _, e := range list {
				f := e.(object)
				short = append(short, fmt.Sprint(f["index"], " ", f["code"], " ", f["attempts"]))
			}
			state[name] = short
		}
	}
	return state
}

// compare compares the state of an open run with the naive interpreter's.
func (s *schedule) compare() {
	o, want := s.naive(s.facts)
	if len(o.complaints) > 0 {
		s.fatalf("%v", o.complaints)
	}
	if want.verdict != stuck {
		s.fatalf("the run is %s, expected an end (%d) at %s", s.m.Status(), want.verdict, want.at)
	}
	if got, want := text(brief(s.m.State())), text(want.view); got != want {
		s.fatalf("state\nwant %s\ngot  %s", want, got)
	}
}

// finish compares an ended run with the naive interpreter, and checks that no input changes it.
func (s *schedule) finish() {
	status := s.m.Status()
	expectations := []map[string]*history.Record{s.facts}
	if s.w.pure && s.facts["cancel"] == nil {
		expectations = append(expectations, nil) // foretold from the outcomes alone
	}
	for _, facts := range expectations {
		o, want := s.naive(facts)
		if len(o.complaints) > 0 {
			s.fatalf("%v", o.complaints)
		}
		if facts == nil && o.open {
			continue
		}
		expected := map[verdict]machine.Status{completed: machine.Completed, failed: machine.Failed, stuck: machine.Cancelled}[want.verdict]
		if status != expected {
			s.fatalf("ended %s, want %s at %s", status, expected, want.at)
		}
		if got, want := text(brief(s.m.State())), text(want.view); got != want {
			s.fatalf("%s with the state\nwant %s\ngot  %s", status, want, got)
		}
		if result, ok := s.m.Result(); ok && text(brief(result.(object))) != text(want.view) {
			s.fatalf("result %s, want %s", text(result), text(want.view))
		}
		if _, _, node := s.m.Failure(); status == machine.Failed && node != want.at {
			s.fatalf("failed at %s, want %s", node, want.at)
		}
	}
	if s.facts["end"] == nil || !s.rows[len(s.rows)-1].Name.Terminal() {
		s.fatalf("an ended run without an end in its history")
	}
	if len(s.m.Pending())+len(s.m.Timers())+len(s.m.InFlight()) > 0 {
		s.fatalf("an ended run waits")
	}
	s.refuse("after the end", machine.Cancel{})
	if len(s.past) > 0 {
		s.refuse("after the end", s.past[s.rng.IntN(len(s.past))])
	}
	if s.rng.IntN(8) == 0 {
		want := summary(s.m)
		m, err := machine.Replay(s.prog, s.cfg, roundTrip(s.t, s.rows), nil, s.now)
		if err != nil || summary(m) != want {
			s.fatalf("replayed to %v, %v\nwant %s", m, err, want)
		}
		if err := m.Handle(machine.Cancel{}, s.now); !errors.Is(err, problem.CancelNotAllowed) {
			s.fatalf("cancelled after the end: %v", err)
		}
	}
}
