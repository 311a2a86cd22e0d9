package process

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// Standing is where a run stands, together with the subworkflows that it waits for.
type Standing struct {
	// Status is the run's, or while it waits for a subworkflow the child's: a subworkflow that pauses pauses its parent.
	Status machine.Status
	// Due is the earliest timer, zero if there is none.
	Due time.Time
	// IDs are the runs that were looked at.
	IDs []string
	// Elsewhere says that another process drives one of them: its progress is not reported here.
	Elsewhere bool
	// Busy says that one of them was at work and not looked at: it may have come to rest since.
	Busy bool
	// Seq is the run's last record, Sum the sum over the runs that were looked at: it changes when one of them does.
	Seq, Sum int64
	// View is the answer of the call, if the look ended its wait (enough) and the run waits for no subworkflow.
	View *view.Run

	// alive is the machine of the run that was looked at, as long as it has not ended. If that very machine has ended by the
	// next look, this process has ended the run meanwhile, and need not ask the store whether that still holds.
	alive *machine.Machine
	// places are the nodes where the run goes on by itself, if wantPlaces asks for them.
	wantPlaces bool
	places     []Progress
	// enough, unless nil, reports whether the caller's wait ends with this look.
	enough func(*Standing) bool
}

// GoesOn reports whether the run will go on by itself within the time left.
func (s *Standing) GoesOn(now time.Time, left time.Duration) bool {
	switch s.Status {
	case machine.Running, machine.AwaitingChild:
		return true
	case machine.AwaitingTimer:
		return !s.Due.IsZero() && s.Due.Sub(now) <= left
	default:
		return false
	}
}

// addRun adds to s where a run itself stands, after firing what is due. The run is locked. upToDate says that its machine is known to
// be up to date. If that is enough for the caller, s has the view, too.
func (s *Standing) addRun(ctx context.Context, x *run.Run, upToDate bool, now func() time.Time, w *run.Work) error {
	err := s.lookAt(ctx, x, upToDate, now, w)
	s.Seq = x.Execution().Seq
	s.Sum += s.Seq
	s.IDs = append(s.IDs, x.ID())
	if err == nil && s.enough != nil && !x.HasChildren() && s.enough(s) {
		s.View, err = x.View(ctx)
	}
	return err
}

func (s *Standing) lookAt(ctx context.Context, x *run.Run, upToDate bool, now func() time.Time, w *run.Work) (err error) {
	if m := x.Machine(); m != nil && (upToDate || x.Ended() && m == s.alive) || x.Attempts() > 0 {
		err = x.Open(ctx)
	} else {
		err = x.Refresh(ctx)
	}
	if err == nil && x.Machine() != nil {
		err = x.FireDue(ctx, w)
	}
	if err != nil && !errors.Is(err, problem.DefinitionNotFound) {
		return err
	}
	m := x.Machine()
	if err != nil || m == nil {
		s.Status = view.StatusOf(x.Execution().Phase)
		return nil
	}
	s.Status = m.Status()
	if !s.Status.Terminal() {
		s.alive = m
		if x.StartsChild() {
			s.Status = machine.Running // the child's first steps belong to this one
		}
	}
	s.Elsewhere = s.Elsewhere || s.Status == machine.Running && x.Attempts() == 0 && !m.Resting()
	if s.wantPlaces {
		s.addPlaces(x)
	}
	s.addTimers(m, now())
	return nil
}

// addTimers moves Due to the run's earliest timer, if that is earlier.
func (s *Standing) addTimers(m *machine.Machine, now time.Time) {
	for _, t := range m.Timers() {
		if w, ok := m.TimedWait(t.Key); m.Walking() || ok && w.Queued && !t.Due.After(now) {
			continue // the end of the walk, or its turn, is what the run waits for
		}
		if s.Due.IsZero() || t.Due.Before(s.Due) {
			s.Due = t.Due
		}
	}
}

// addPlaces adds where the run goes on by itself. At what this process lacks it may well stand still.
func (s *Standing) addPlaces(x *run.Run) {
	for _, w := range x.Machine().Pending() {
		if w.Kind == machine.WaitInterrupt || w.Kind == machine.WaitSignal || w.Host || !x.StartedHere() && x.LackFor(&w) != nil {
			continue
		}
		p := Progress{ExecutionID: x.ID(), NodeID: w.NodeID, NodeVisits: x.Machine().Visits(), Kind: NodeRuns, Attempt: w.Attempt}
		if w.Span != nil {
			p.Branch = w.Span.BranchName
		}
		s.places = append(s.places, p)
	}
}
