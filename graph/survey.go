package graph

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/execution"
	"github.com/workflows-engine/workflows-engine/graph/library"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// LeftRun is a run without a driver that this process leaves to others.
type LeftRun struct {
	ExecutionID string
	// Lack is what this process lacks to go on with it, nil if it cannot even tell where the run stands (Err).
	Lack *Lack
	// Err is why the run cannot be loaded, such as DEFINITION_REQUIRED; nil with Lack.
	Err error
}

// Survey is Recover with DryRun for some runs alone, of which it reads no more than it needs. Subworkflows are runs of their
// own here, and an id that no run has is passed over. The error is the store's.
func (r *Runner) Survey(ctx context.Context, executionIDs ...string) (*RecoverResult, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	ctx, stop := r.untilClose(ctx)
	defer stop()
	s := r.newSurvey(len(executionIDs))
	for _, id := range executionIDs {
		orphaned, err := r.orphaned(ctx, id)
		switch {
		case err != nil:
			return nil, err
		case orphaned:
			err = s.orphan(ctx, id)
		default:
			var t history.Timer
			var due bool
			if t, due, err = r.dueTimer(ctx, id, s.now); due {
				err = s.due(ctx, t)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return &s.found, nil
}

// orphaned reports whether Store.Unowned would return a run.
func (r *Runner) orphaned(ctx context.Context, id string) (bool, error) {
	exec, err := r.store.Execution(ctx, id)
	if errors.Is(err, problem.ExecutionNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if owner, err := r.store.Owner(ctx, id); err != nil || owner.Live() {
		return false, err
	}
	return r.standsStill(ctx, &exec)
}

// standsStill reports whether a run needs a driver; see history.Execution.Orphaned.
func (r *Runner) standsStill(ctx context.Context, exec *history.Execution) (bool, error) {
	var err error
	orphaned := exec.Orphaned(func(id string) (history.Phase, bool) {
		other, failed := r.store.Execution(ctx, id)
		if failed != nil && !errors.Is(failed, problem.ExecutionNotFound) {
			err = failed
		}
		return other.Phase, failed == nil
	})
	return orphaned && err == nil, err
}

// dueTimer returns the timer of a run that has been due longest.
func (r *Runner) dueTimer(ctx context.Context, id string, now time.Time) (first history.Timer, due bool, err error) {
	x := r.runs.Hold(id)
	defer r.runs.Drop(x)
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

// survey says what Recover would do, without a write. It looks at runs until it has found as many to take over as the limit
// says: those that are left to others are in nobody's way.
func (r *Runner) survey(ctx context.Context, limit int) (*RecoverResult, error) {
	s := r.newSurvey(limit)
	ids, err := r.store.Unowned(ctx, 0)
	if err != nil {
		return nil, err
	}
	timers, err := r.store.DueTimers(ctx, s.now, 0)
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

// survey is what a dry run has found so far.
type survey struct {
	r     *Runner
	now   time.Time
	limit int
	found RecoverResult
	seen  map[string]bool
	asked map[execution.WorkflowName]error // what came of asking for workflows
}

func (r *Runner) newSurvey(limit int) *survey {
	return &survey{r: r, now: r.now(), limit: limit, seen: map[string]bool{}, asked: map[execution.WorkflowName]error{}}
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
		if needs, err := s.r.standsStill(ctx, e); err != nil || !needs {
			return err
		}
		owner, err := s.r.store.Owner(ctx, e.ID)
		if err == nil && owner.Live() && owner.Process != s.r.lease.Process() {
			s.found.Elsewhere = append(s.found.Elsewhere, OwnedRun{ExecutionID: e.ID, Owner: owner})
		}
		return err
	}
	for _, phase := range history.Phases() {
		if phase.Terminal() {
			continue
		}
		if err := s.r.each(ctx, phase, look); err != nil {
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
		root, err := s.r.root(ctx, id)
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
	takes, lack, err := s.r.prospect(ctx, id, orphaned, s.asked)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if lack != nil || err != nil {
		s.found.Left = append(s.found.Left, LeftRun{ExecutionID: id, Lack: lack, Err: err})
	}
	return takes && err == nil, nil
}

// prospect says whether Recover would go on with a run, and if not, what this process lacks for it; neither if that is
// another process's business. asked holds what came of asking for workflows.
func (r *Runner) prospect(ctx context.Context, id string, orphaned bool, asked map[execution.WorkflowName]error) (takes bool, lack *Lack, err error) {
	var p execution.Prospect
	x := r.runs.Hold(id)
	defer r.runs.Drop(x)
	err = locked(x, func() (err error) {
		p, err = x.Prospect(ctx, orphaned)
		return err
	})
	if err != nil || p.NotOurs {
		return false, nil, err
	}
	takes, lack = p.Takes, p.Lack

	if !takes && p.Parent != "" { // a subworkflow ends with its parent
		parent, err := r.store.Execution(ctx, p.Parent)
		takes = err == nil && parent.Phase.Terminal()
	}
	for _, e := range p.Children {
		if takes || !orphaned {
			break
		}
		var missing *Lack
		if takes, missing, err = r.prospectChild(ctx, id, e, p.Depth, asked); err != nil {
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

// prospectChild says whether Recover would begin a subworkflow, or tell its parent of its end.
func (r *Runner) prospectChild(ctx context.Context, parent string, e *machine.ChildEffect, depth int, asked map[execution.WorkflowName]error) (takes bool, lack *Lack, err error) {
	child, err := r.store.Execution(ctx, e.ChildExecutionID)
	if err == nil {
		// An open one has its own driver, or is an orphan itself; one that is not this run's is refused, which is recorded.
		return child.Phase.Terminal() || child.Parent != parent && !execution.Adoptable(child), nil, nil
	}
	if !errors.Is(err, problem.ExecutionNotFound) {
		return false, nil, err
	}
	if depth >= r.opts.MaxDepth {
		return true, nil, nil // it is refused, which is recorded
	}
	name := execution.NameOf(e)
	err, known := asked[name]
	if !known {
		_, err = r.library.Resolve(ctx, name)
		asked[name] = err
	}
	if !library.IsUnknown(err) || ctx.Err() != nil {
		return err == nil, nil, err
	}
	r.library.NoteUnknown(name, err)
	return false, library.LackOf(parent, e.NodeID, name, err), nil
}
