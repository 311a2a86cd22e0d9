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

// Standing is the state of a run and the subworkflows that it waits for.
type Standing struct {
	// Status is the run's status or, while it waits for a subworkflow, the child's: if the child waits, so does the parent.
	Status machine.Status
	// Due is the earliest timer, zero without one.
	Due time.Time
	// IDs are the runs included.
	IDs []string
	// Elsewhere reports that another process drives one of them. Its progress is not reported here.
	Elsewhere bool
	// Busy reports that one of them was busy and was skipped: it may be waiting by now.
	Busy bool
	// Seq is the run's last record, Sum the sum over all runs included: it changes when one of them does.
	Seq, Sum int64
	// View is the answer of the call, if its wait ended with this look (enough) and the run waits for no subworkflow.
	View *view.Run

	// alive is the machine of the run, if it has not ended. If the same machine has ended by the next look, this process has ended the
	// run, so a read of the store is not needed.
	alive *machine.Machine
	// places are the nodes where the run proceeds by itself, if wantPlaces is set.
	wantPlaces bool
	places     []Progress
	// enough, unless nil, reports whether the caller's wait ends with this look.
	enough func(*Standing) bool
}

// GoesOn reports whether the run will proceed by itself within the time left.
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

// addRun fires due timers and adds the state of a run to s. The run is locked. upToDate reports that its machine is up to date. If
// enough, it adds the view, too.
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
			continue // the run waits for the end of the walk, or for its turn
		}
		if s.Due.IsZero() || t.Due.Before(s.Due) {
			s.Due = t.Due
		}
	}
}

// addPlaces adds the nodes where the run proceeds by itself, except for nodes whose executor is missing here.
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
