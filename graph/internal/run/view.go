package run

import (
	"context"
	"errors"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// View returns the view of the run alone. It does not include the waits of subworkflows, which need their own locks.
func (x *Run) View(ctx context.Context) (*view.Run, error) {
	err := x.Open(ctx)
	unknown := errors.Is(err, problem.DefinitionNotFound)
	if err != nil && !unknown {
		return nil, err
	}
	lack := x.lackOfTrust(err)
	s := x.source(ctx, &x.exec)
	if x.m != nil {
		s.Waits = x.m.Pending()
	}
	switch {
	case unknown:
		if s.StoredState, err = RecordedState(ctx, x.env.Store, x.exec); err != nil {
			return nil, err
		}
	case x.Ended():
		end, err := x.Ending(ctx)
		if err != nil {
			return nil, err
		}
		s.Ending = &end
	case !x.Owned() && !x.env.Sharing.None:
		lack = x.lacks(s.Waits)
	}
	v := view.Of(s)
	if err := Journals(ctx, x.env.Store, v.Pending); err != nil {
		return nil, err
	}
	if v.Lacks, err = x.UnlessOwned(ctx, lack); err != nil {
		return v, err
	}
	if !x.Owned() && v.Status == machine.Running {
		if v.Ready, err = x.readyPlace(ctx); err != nil {
			return v, err
		}
	}
	if v.Ready == nil || v.Ready.Workers > 0 {
		err = x.showLimits(ctx, v.Pending)
	}
	if v.Ready != nil && v.Ready.Workers > 0 && v.Lacks != nil && !v.Lacks.Host {
		v.Lacks = nil
	}
	return v, err
}

// showLimits sets the shared limits that attempts of this run wait for.
func (x *Run) showLimits(ctx context.Context, pending []view.Pending) error {
	if x.prog == nil {
		return nil
	}
	for i := range pending {
		p := &pending[i]
		n := x.prog.Node(p.NodeID)
		if !p.Queued || p.ExecutionID != x.id || n == nil {
			continue
		}
		uses, err := x.env.Sharing.Limits(ctx, x.env.Performer.Classes(n))
		if err != nil {
			return err
		}
		for j := range uses {
			u := &uses[j]
			full := u.Concurrent > 0 && u.Slots() >= u.Concurrent
			waits := slices.ContainsFunc(u.Shares, func(s history.Share) bool { return s.Starts > 0 })
			if (full || waits) && (p.Limit == nil || full) {
				p.Limit = u
			}
		}
	}
	return nil
}

// readyPlace returns the place of the run among the ready ones, nil without one.
func (x *Run) readyPlace(ctx context.Context) (*view.Ready, error) {
	s := &x.env.Sharing
	if s.Queue == nil {
		return nil, nil
	}
	place, ok, err := s.Queue.Place(ctx, x.id)
	if err != nil || !ok {
		return nil, err
	}
	workers, err := s.Workers(ctx, place.Lane)
	return &view.Ready{Place: place, Workers: workers}, err
}

// prospectiveView is View after a batch of records is appended; exec is the projection then.
func (x *Run) prospectiveView(ctx context.Context, exec *history.Execution, records []history.Record) *view.Run {
	s := x.source(ctx, exec)
	if x.m.Status().Terminal() {
		end := view.EndingOf(x.m, exec.DefinitionHash)
		s.Ending = &end
	}
	s.Waits = x.m.Pending()
	v := view.Of(s)
	if err := Journals(ctx, x.env.Store, v.Pending); err != nil {
		x.env.Log.Warn("question not read for a webhook", LogRun, x.id, LogError, err)
	}
	for i := range v.Pending {
		p := &v.Pending[i]
		if at := p.QuestionSeq - x.exec.Seq - 1; at >= 0 && at < int64(len(records)) {
			if q := machine.QuestionOf(&records[at]); q != nil && len(q.Body) > 0 {
				p.Show = q.Body // it is about to be recorded
			}
		}
	}
	return v
}

// source returns the input of a view, except for the ending.
func (x *Run) source(ctx context.Context, exec *history.Execution) view.Source {
	return view.Source{
		Execution: exec, Machine: x.m, Program: x.prog, MaxVisits: x.env.MaxVisits, Mode: x.env.DefaultMode, Limits: x.env.Limits,
		Tree: x.env.Tree.Usage(ctx, exec), Now: x.env.Now(),
	}
}

// Ending returns the end of the run, from the machine that ended it or from the last records.
func (x *Run) Ending(ctx context.Context) (view.Ending, error) {
	if x.m == nil {
		return RecordedEnding(ctx, x.env.Store, x.exec)
	}
	return view.EndingOf(x.m, x.exec.DefinitionHash), nil
}
