package process

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// SurveyRuns says what a process would do for some runs, of which it reads no more than it needs. Subworkflows are runs of their own here,
// and an id that no run has is passed over. The error is the store's.
func (p *Process) SurveyRuns(ctx context.Context, executionIDs ...string) (*SurveyResult, error) {
	s := newSurvey(p, len(executionIDs))
	for _, id := range executionIDs {
		orphan, err := s.isOrphan(ctx, id)
		switch {
		case err != nil:
			return nil, err
		case orphan:
			err = s.orphan(ctx, id)
		default:
			var t history.Timer
			var due bool
			if t, due, err = s.dueTimer(ctx, id, s.now); due {
				err = s.due(ctx, t)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return &s.found, nil
}

// SurveyAll says what a process would do for all runs of its store. It looks at runs until it has found as many to take over as the limit
// says: those that are left to others do not count.
func (p *Process) SurveyAll(ctx context.Context, limit int) (*SurveyResult, error) {
	s := newSurvey(p, limit)
	ids, err := p.Store.Unowned(ctx, 0)
	if err != nil {
		return nil, err
	}
	timers, err := p.Store.DueTimers(ctx, s.now, 0)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := s.orphan(ctx, id); err != nil {
			return nil, err
		}
	}
	for _, t := range timers {
		if err := s.due(ctx, t); err != nil {
			return nil, err
		}
	}
	if err := s.elsewhere(ctx); err != nil {
		return nil, err
	}
	return &s.found, s.roots(ctx)
}

// survey is what has been found so far.
type survey struct {
	*Process
	now   time.Time
	limit int
	found SurveyResult
	seen  map[string]bool
	asked map[library.WorkflowName]error // what came of asking for workflows
}

func newSurvey(p *Process, limit int) *survey {
	return &survey{Process: p, now: p.Now(), limit: limit, seen: map[string]bool{}, asked: map[library.WorkflowName]error{}}
}

// orphan looks at a run without a driver, due at one of which a timer is due.
func (s *survey) orphan(ctx context.Context, id string) error {
	takes, err := s.look(ctx, id, true)
	if takes {
		s.found.ExecutionIDs = append(s.found.ExecutionIDs, id)
	}
	return err
}

func (s *survey) due(ctx context.Context, t history.Timer) error {
	takes, err := s.look(ctx, t.ExecutionID, false)
	if takes {
		s.found.Due = append(s.found.Due, t)
	}
	return err
}

// elsewhere notes the runs that other processes drive.
func (s *survey) elsewhere(ctx context.Context) error {
	look := func(e *history.Execution) error {
		if needs, err := s.needsDriver(ctx, e); err != nil || !needs {
			return err
		}
		owner, err := s.Store.Owner(ctx, e.ID)
		if err == nil && owner.Live() && owner.Process != s.Name() {
			s.found.Elsewhere = append(s.found.Elsewhere, OwnedRun{ExecutionID: e.ID, Owner: owner})
		}
		return err
	}
	for _, phase := range history.Phases() {
		if phase.Terminal() {
			continue
		}
		if err := history.Each(ctx, s.Store, phase, look); err != nil {
			return err
		}
	}
	return nil
}

// roots notes to which runs the subworkflows belong that were found.
func (s *survey) roots(ctx context.Context) error {
	ids := slices.Clone(s.found.ExecutionIDs)
	for _, t := range s.found.Due {
		ids = append(ids, t.ExecutionID)
	}
	for _, l := range s.found.Left {
		ids = append(ids, l.ExecutionID)
	}
	s.found.Roots = map[string]string{}
	for _, id := range ids {
		root, err := TreeRoot(ctx, s.Store, id)
		if err != nil && !errors.Is(err, problem.ExecutionNotFound) { // else it was deleted meanwhile
			return err
		}
		if root != id {
			s.found.Roots[id] = root
		}
	}
	return nil
}

func (s *survey) look(ctx context.Context, id string, orphaned bool) (takes bool, err error) {
	if s.seen[id] || len(s.found.ExecutionIDs)+len(s.found.Due) >= s.limit {
		return false, nil
	}
	s.seen[id] = true
	takes, lack, err := s.prospect(ctx, id, orphaned)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if lack != nil || err != nil {
		s.found.Left = append(s.found.Left, LeftRun{ExecutionID: id, Lack: lack, Err: err})
	}
	return takes && err == nil, nil
}

// prospect says whether a recovery would go on with a run, and if not, what this process lacks for it; neither if that is
// another process's business.
func (s *survey) prospect(ctx context.Context, id string, orphaned bool) (takes bool, lack *view.Lack, err error) {
	x := s.Runs.Hold(id)
	defer s.Runs.Drop(x)
	x.Lock()
	p, err := x.Prospect(ctx, orphaned)
	x.Unlock()
	if err != nil || p.NotOurs {
		return false, nil, err
	}
	takes, lack = p.Takes, p.Lack

	if !takes && p.Parent != "" { // a subworkflow ends with its parent
		parent, err := s.Store.Execution(ctx, p.Parent)
		takes = err == nil && parent.Phase.Terminal()
	}
	for _, e := range p.Children {
		if takes || !orphaned {
			break
		}
		var missing *view.Lack
		if takes, missing, err = s.prospectChild(ctx, id, e, p.Depth); err != nil {
			return false, nil, err
		}
		if lack == nil {
			lack = missing
		}
	}
	if takes {
		return true, nil, nil
	}
	return false, lack, nil
}

// prospectChild says whether a recovery would begin a subworkflow, or tell its parent of its end.
func (s *survey) prospectChild(ctx context.Context, parent string, e *machine.ChildEffect, depth int) (takes bool, lack *view.Lack, err error) {
	child, err := s.Store.Execution(ctx, e.ChildExecutionID)
	if err == nil {
		// An open one has its own driver, or is an orphan itself; one that is not this run's is refused, which is recorded.
		return child.Phase.Terminal() || child.Parent != parent && !run.Adoptable(child), nil, nil
	}
	if !errors.Is(err, problem.ExecutionNotFound) {
		return false, nil, err
	}
	if depth >= s.config.MaxDepth {
		return true, nil, nil // it is refused, which is recorded
	}
	name := library.NameOf(e)
	err, known := s.asked[name]
	if !known {
		_, err = s.Library.Resolve(ctx, name)
		s.asked[name] = err
	}
	if !library.IsUnknown(err) || ctx.Err() != nil {
		return err == nil, nil, err
	}
	s.Library.NoteUnknown(name, err)
	return false, library.LackOf(parent, e.NodeID, name, err), nil
}

// isOrphan reports whether Store.Unowned would return a run.
func (s *survey) isOrphan(ctx context.Context, id string) (bool, error) {
	exec, err := s.Store.Execution(ctx, id)
	if errors.Is(err, problem.ExecutionNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if owner, err := s.Store.Owner(ctx, id); err != nil || owner.Live() {
		return false, err
	}
	return s.needsDriver(ctx, &exec)
}

// needsDriver reports whether a run needs a driver; see history.Execution.Orphaned.
func (s *survey) needsDriver(ctx context.Context, exec *history.Execution) (bool, error) {
	var err error
	orphaned := exec.Orphaned(func(id string) (history.Phase, bool) {
		other, failed := s.Store.Execution(ctx, id)
		if failed != nil && !errors.Is(failed, problem.ExecutionNotFound) {
			err = failed
		}
		return other.Phase, failed == nil
	})
	return orphaned && err == nil, err
}

// dueTimer returns the timer of a run that has been due longest.
func (s *survey) dueTimer(ctx context.Context, id string, now time.Time) (first history.Timer, due bool, err error) {
	x := s.Runs.Hold(id)
	defer s.Runs.Drop(x)
	x.Lock()
	defer x.Unlock()
	switch err := x.Refresh(ctx); {
	case errors.Is(err, problem.ExecutionNotFound), errors.Is(err, problem.DefinitionNotFound): // another engine's has no timers
		return first, false, nil
	case err != nil || x.Machine() == nil:
		return first, false, err
	}
	for _, t := range x.Machine().Timers() {
		if !t.Due.After(now) && (!due || t.Due.Before(first.Due)) {
			first, due = history.Timer{ExecutionID: id, Key: t.Key, Due: t.Due}, true
		}
	}
	return first, due, nil
}
