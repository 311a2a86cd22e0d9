package run

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// addRun adds to s where a run itself stands, after firing what is due. The run is locked. upToDate says that its machine is known to
// be up to date.
func (s *Standing) addRun(ctx context.Context, x *Run, upToDate bool, now func() time.Time, w *Work) error {
	defer func() {
		s.Seq = x.Execution().Seq
		s.Sum += s.Seq
		s.IDs = append(s.IDs, x.ID())
	}()
	var err error
	if m := x.Machine(); m != nil && (upToDate || x.Ended() && m == s.Alive) || x.Attempts() > 0 {
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
		s.Alive = m
		if x.StartsChild() {
			s.Status = machine.Running // the child's first steps belong to this one
		}
	}
	s.Elsewhere = s.Elsewhere || s.Status == machine.Running && x.Attempts() == 0 && !m.Resting()
	if s.WantPlaces {
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
func (s *Standing) addPlaces(x *Run) {
	for _, w := range x.Machine().Pending() {
		if w.Kind == machine.WaitInterrupt || w.Kind == machine.WaitSignal || w.Host || !x.StartedHere() && x.LackFor(&w) != nil {
			continue
		}
		p := Place{ExecutionID: x.ID(), NodeID: w.NodeID, NodeVisits: x.Machine().Visits(), Attempt: w.Attempt}
		if w.Span != nil {
			p.Branch = w.Span.BranchName
		}
		s.At = append(s.At, p)
	}
}
