package execution

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/recorded"
	"github.com/workflows-engine/workflows-engine/graph/runview"
)

// Standing is where a run stands, together with the subworkflows that it waits for.
type Standing struct {
	// Status is the run's, or while it waits for a subworkflow the child's: a subworkflow that pauses pauses its parent.
	Status machine.Status
	// Due is the earliest timer, zero if there is none.
	Due time.Time
	// IDs are the runs that were looked at.
	IDs []string
	// Alive is the machine of the run that was looked at, as long as it has not ended. If that very machine has ended by the
	// next look, this process has ended the run meanwhile, and need not ask the store whether that still holds.
	Alive *machine.Machine
	// Elsewhere says that another process drives one of them: its progress is not reported here.
	Elsewhere bool
	// Seq is the run's last record, Sum the sum over the runs that were looked at: it changes when one of them does.
	Seq, Sum int64
	// At are the nodes where the run goes on by itself, if WantPlaces asks for them.
	WantPlaces bool
	At         []Place
}

// Place is a node where a run stands.
type Place struct {
	ExecutionID, NodeID string
	// Branch is the parallel branch of the node, "" outside.
	Branch              string
	NodeVisits, Attempt int
}

// Stand adds to s where the run itself stands, after firing what is due. upToDate says that the machine is known to be up to date.
func (x *Run) Stand(ctx context.Context, upToDate bool, s *Standing, w *Work) error {
	defer func() {
		s.Seq = x.exec.Seq
		s.Sum += x.exec.Seq
		s.IDs = append(s.IDs, x.id)
	}()
	var err error
	if x.m != nil && (upToDate || x.Ended() && x.m == s.Alive) || len(x.attempts) > 0 {
		err = x.Open(ctx)
	} else {
		err = x.Refresh(ctx)
	}
	if err == nil && x.m != nil {
		err = x.FireDue(ctx, w)
	}
	if err != nil && !errors.Is(err, problem.DefinitionNotFound) {
		return err
	}
	if err != nil || x.m == nil {
		s.Status = runview.StatusOf(x.exec.Phase)
		return nil
	}
	s.Status = x.m.Status()
	if !s.Status.Terminal() {
		s.Alive = x.m
		if x.StartsChild() {
			s.Status = machine.Running // the child's first steps belong to this one
		}
	}
	s.Elsewhere = s.Elsewhere || s.Status == machine.Running && len(x.attempts) == 0 && !x.m.Resting()
	if s.WantPlaces {
		x.notePlaces(s)
	}
	now := x.env.Now()
	for _, t := range x.m.Timers() {
		if w, ok := x.m.TimedWait(t.Key); x.m.Walking() || ok && w.Queued && !t.Due.After(now) {
			continue // the end of the walk, or its turn, is what the run waits for
		}
		if s.Due.IsZero() || t.Due.Before(s.Due) {
			s.Due = t.Due
		}
	}
	return nil
}

// notePlaces notes where the run goes on by itself. At what this process lacks it may well stand still.
func (x *Run) notePlaces(s *Standing) {
	for _, w := range x.m.Pending() {
		if w.Kind == machine.WaitInterrupt || w.Kind == machine.WaitSignal || w.Host || !x.startedHere && x.lackFor(&w) != nil {
			continue
		}
		p := Place{ExecutionID: x.id, NodeID: w.NodeID, NodeVisits: x.m.Visits(), Attempt: w.Attempt}
		if w.Span != nil {
			p.Branch = w.Span.BranchName
		}
		s.At = append(s.At, p)
	}
}

// Ending returns how the run ended: from the machine that ended it, or from the last records.
func (x *Run) Ending(ctx context.Context) (runview.Ending, error) {
	if x.m == nil {
		return recorded.Ending(ctx, x.env.Store, x.exec)
	}
	return runview.EndingOf(x.m, x.exec.DefinitionHash), nil
}
