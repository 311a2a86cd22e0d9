package graphtest

import (
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// maxDepth and maxSteps bound a simulation: the nesting of subworkflows is that of graph.Options by default, and a run that goes on for
// ever exceeds the inputs to its machines.
const (
	maxDepth = 4
	maxSteps = 100_000
)

var defaultStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// simulation is a run with its subworkflows and its environment.
type simulation struct {
	scenario   Scenario
	start, now time.Time
	// runs are the active runs; the first one is the root, which stays.
	runs     []*run
	queue    []event
	planned  []planned
	coverage Coverage
	visits   map[string]int
	steps    int
	// cancelled is set once the cancel of the scenario has happened.
	cancelled bool
	// err is the first error of the scenario.
	err error
}

// event happens at a time. Events of the same time keep their order.
type event struct {
	at time.Time
	do func()
	// run, unless nil, is whose event it is; key is that of the wait that it ends. Once that wait is over, the event is not needed.
	run *run
	key string
}

// planned happens once a run waits at a node, or for a signal.
type planned struct {
	Moment
	signal string
	do     func()
}

// Simulate runs a definition in a scenario, until the run ends or nothing more can happen. The error is a *problem.Error if the definition is
// invalid or the scenario does not fit the run, such as TEST_STUB_MISSING; the outcome then has the run so far.
func Simulate(doc *definition.Document, scenario Scenario) (*Outcome, error) {
	prog, err := admit.Definition(doc, definition.MaxBytes, definition.Options{})
	if err != nil {
		return nil, err
	}
	input, err := object("Scenario.Input", scenario.Input)
	if err != nil {
		return nil, err
	}
	s := &simulation{scenario: scenario, start: scenario.Start, visits: map[string]int{}}
	if s.start.IsZero() {
		s.start = defaultStart
	}
	s.now = s.start
	if err := admit.Input(prog, input); err != nil {
		return &Outcome{Status: Refused, Error: failureOf(err), Visits: s.visits}, nil
	}
	root := &run{}
	s.begin(root, prog, machine.Config{ExecutionID: "test"}, input)
	s.prepare()
	for s.err == nil && !root.m.Status().Terminal() {
		s.plan()
		if s.err != nil || root.m.Status().Terminal() || !s.next() {
			break
		}
	}
	if s.err == nil && scenario.Cancel != nil && !s.cancelled {
		s.fail(problem.New(problem.ValidationError, "the cancel never comes: the run is %s after %s of its time", root.m.Status(), s.now.Sub(s.start)).
			WithHint("Cancel it earlier, or while it waits at a node that it reaches."))
	}
	return s.outcome(root), s.err
}

// prepare queues the signals and the cancel with a known time, and plans the others.
func (s *simulation) prepare() {
	for _, signal := range s.scenario.Signals {
		p := planned{Moment: signal.Moment, signal: signal.Name, do: func() { s.deliver(signal) }}
		if p.When == "" && p.After > 0 {
			s.after(p.After, p.do)
		} else {
			s.planned = append(s.planned, p)
		}
	}
	if c := s.scenario.Cancel; c != nil {
		p := planned{Moment: c.Moment, do: func() {
			s.cancelled = true
			s.runs[0].take(machine.Cancel{Reason: c.Reason})
		}}
		if p.When == "" {
			s.after(p.After, p.do)
		} else {
			s.planned = append(s.planned, p)
		}
	}
}

// plan queues answers, and the signals and the cancel whose moment has come.
func (s *simulation) plan() {
	for _, r := range s.runs {
		r.answer()
	}
	s.planned = slices.DeleteFunc(s.planned, func(p planned) bool {
		switch {
		case s.err != nil:
			return false
		case p.When != "":
			if s.waiting(func(r *run, w machine.Wait) bool { return r.prefix+w.NodeID == p.When }) == nil {
				return false
			}
			s.after(p.After, p.do)
		case s.receiver(p.signal) == nil:
			return false
		default:
			p.do()
		}
		return true
	})
}

// waiting returns the first run with a matching wait, or nil.
func (s *simulation) waiting(is func(*run, machine.Wait) bool) *run {
	for _, r := range s.runs {
		if slices.ContainsFunc(r.pending, func(w machine.Wait) bool { return is(r, w) }) {
			return r
		}
	}
	return nil
}

func (s *simulation) receiver(signal string) *run {
	return s.waiting(func(_ *run, w machine.Wait) bool { return w.Kind == machine.WaitSignal && w.SignalName == signal })
}

// deliver sends a signal to the run that waits for it, or else to the root, which rejects it.
func (s *simulation) deliver(signal Signal) {
	payload, err := object("Signal.Payload", signal.Payload)
	if err != nil {
		s.fail(err)
		return
	}
	r := s.receiver(signal.Name)
	if r == nil {
		r = s.runs[0]
	}
	if err := r.take(machine.Signal{Name: signal.Name, Payload: payload}); err != nil {
		s.fail(s.refused(err, "signal %q after %s", signal.Name, s.now.Sub(s.start)))
	}
}

// next handles the next event. It returns false after the last one.
func (s *simulation) next() bool {
	if s.steps++; s.steps > maxSteps {
		s.fail(problem.New(problem.ValidationError, "the run has not ended after %d steps, in %s of its time", maxSteps, s.now.Sub(s.start)).
			WithHint("See whether a loop never ends."))
		return false
	}
	var timer machine.Timer
	var of *run
	for _, r := range s.runs {
		for _, t := range r.timers {
			if of == nil || t.Due.Before(timer.Due) {
				timer, of = t, r
			}
		}
	}
	first := s.first()
	switch {
	case of != nil && (first < 0 || !s.queue[first].at.Before(timer.Due)):
		s.passTo(timer.Due)
		if err := of.take(machine.TimerFired{Key: timer.Key}); err != nil {
			s.fail(err)
		}
	case first >= 0:
		e := s.queue[first]
		s.queue = slices.Delete(s.queue, first, first+1)
		s.passTo(e.at)
		e.do()
	default:
		return false
	}
	return true
}

// first returns the index of the next event, or -1, and drops events that are no longer needed.
func (s *simulation) first() int {
	for {
		first := -1
		for i, e := range s.queue {
			if first < 0 || e.at.Before(s.queue[first].at) {
				first = i
			}
		}
		if first < 0 || s.queue[first].run == nil || s.queue[first].run.waits(s.queue[first].key) {
			return first
		}
		s.queue = slices.Delete(s.queue, first, first+1)
	}
}

func (s *simulation) passTo(t time.Time) {
	if t.After(s.now) {
		s.now = t
	}
}

// after queues an event that is always needed.
func (s *simulation) after(d time.Duration, do func()) {
	s.queue = append(s.queue, event{at: s.now.Add(d), do: do})
}

func (s *simulation) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// refused returns the error of an action of the scenario that a run rejects.
func (s *simulation) refused(err error, format string, args ...any) error {
	e := problem.New(problem.ValidationError, format+" was refused", args...).WithCause(err)
	if p, ok := problem.As(err); ok {
		e.Code = p.Code
	}
	return e
}

// outcome describes the root run.
func (s *simulation) outcome(root *run) *Outcome {
	m := root.m
	out := &Outcome{
		Status: m.Status(), Path: root.path, Visits: s.visits, State: copied(m.State()), Reason: m.Reason(),
		Elapsed: s.now.Sub(s.start), Coverage: s.coverage,
	}
	if result, ok := m.Result(); ok {
		out.Result = copiedValue(result)
	}
	if message, code, node := m.Failure(); out.Status == machine.Failed {
		out.Error = &Failure{Code: code, Message: message, NodeID: node, Data: jsonvalue.CloneMap(m.FailureData())}
	}
	if out.Status.Terminal() {
		return out
	}
	for _, r := range s.runs {
		for _, w := range r.pending {
			if w.Kind != machine.WaitChild {
				out.Waiting = append(out.Waiting, r.prefix+w.NodeID)
			}
		}
		if out.Status == machine.AwaitingChild { // a run that waits for its subworkflow waits for what that one waits for
			out.Status = r.m.Status()
		}
	}
	return out
}
