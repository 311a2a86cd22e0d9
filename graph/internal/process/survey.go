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
	s.some = true
	for _, id := range executionIDs {
		exec, err := p.Store.Execution(ctx, id)
		if errors.Is(err, problem.ExecutionNotFound) {
			continue
		}
		var orphan bool
		if err == nil {
			orphan, err = s.isOrphan(ctx, &exec)
		}
		if err == nil {
			err = s.look(ctx, id, orphan)
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
		if err := s.look(ctx, id, true); err != nil {
			return nil, err
		}
	}
	for _, t := range timers {
		if err := s.look(ctx, t.ExecutionID, false); err != nil {
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
	some  bool // not the whole store
	found SurveyResult
	seen  map[string]bool
	asked map[library.WorkflowName]error // what came of asking for workflows
}

func newSurvey(p *Process, limit int) *survey {
	return &survey{Process: p, now: p.Now(), limit: limit, seen: map[string]bool{}, asked: map[library.WorkflowName]error{}}
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

// look notes what a recovery would do with a run.
func (s *survey) look(ctx context.Context, id string, orphan bool) error {
	if s.seen[id] || len(s.found.ExecutionIDs)+len(s.found.Due) >= s.limit {
		return nil
	}
	s.seen[id] = true
	p, err := s.preview(ctx, id, orphan)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !orphan && p.Due.Key == "" && (err == nil || s.some && errors.Is(err, problem.DefinitionNotFound)):
		// Nothing is due, as far as can be told.
	case p.Lack != nil || err != nil:
		s.found.Left = append(s.found.Left, LeftRun{ExecutionID: id, Lack: p.Lack, Err: err})
	case p.Acts && orphan:
		s.found.ExecutionIDs = append(s.found.ExecutionIDs, id)
	case p.Acts:
		s.found.Due = append(s.found.Due, history.Timer{ExecutionID: id, Key: p.Due.Key, Due: p.Due.Due})
	}
	return nil
}

// preview previews the takeover of a run. Workflows of subworkflows are looked for without its lock, since a Resolver may take its time.
func (s *survey) preview(ctx context.Context, id string, orphan bool) (p run.Preview, err error) {
	x := s.Runs.Hold(id)
	defer s.Runs.Drop(x)
	x.Lock()
	p, err = x.Preview(ctx, orphan)
	x.Unlock()
	for _, e := range p.Begins {
		if err != nil || p.Acts {
			break
		}
		var missing *view.Lack
		if p.Acts, missing, err = s.wouldBegin(ctx, id, e, p.Depth); p.Lack == nil {
			p.Lack = missing
		}
	}
	if p.Acts {
		p.Lack = nil
	}
	return p, err
}

// wouldBegin reports whether a recovery would begin a subworkflow, or record that it cannot; else what this process lacks for that.
func (s *survey) wouldBegin(ctx context.Context, parent string, e *machine.ChildEffect, depth int) (acts bool, lack *view.Lack, err error) {
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
func (s *survey) isOrphan(ctx context.Context, e *history.Execution) (bool, error) {
	if owner, err := s.Store.Owner(ctx, e.ID); err != nil || owner.Live() {
		return false, err
	}
	return s.needsDriver(ctx, e)
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

// SurveyResult is what was found, or what a recovery has done.
type SurveyResult struct {
	// ExecutionIDs were (or would be) taken over, oldest first.
	ExecutionIDs []string
	// Due are the timers that would be fired, the earliest of each run that is not taken over anyway (a survey only).
	Due []history.Timer
	// Left are the runs that would be left to others because this process lacks something (a survey only).
	Left []LeftRun
	// Elsewhere are the runs that need a driver and have one: another process owns them (All only).
	Elsewhere []OwnedRun
	// Roots has the run from which to go on with it (Root) for each subworkflow above that is not one itself (All only).
	Roots map[string]string
}

// LeftRun is a run without a driver that this process leaves to others.
type LeftRun struct {
	ExecutionID string
	// Lack is what this process lacks to go on with it, nil if it cannot even tell where the run stands (Err).
	Lack *view.Lack
	// Err is why the run cannot be loaded, such as DEFINITION_REQUIRED; nil with Lack.
	Err error
}

// OwnedRun is a run that another process with a live lease owns.
type OwnedRun struct {
	ExecutionID string
	Owner       history.Owner
}

// TreeRoot returns the run from which to go on with a run: the highest one above it that waits for it. A subworkflow that is rolled back may
// outlive the wait for it, and the run that began it.
func TreeRoot(ctx context.Context, store history.Store, id string) (string, error) {
	exec, err := store.Execution(ctx, id)
	for err == nil && exec.Parent != "" {
		parent, failed := store.Execution(ctx, exec.Parent)
		if failed != nil {
			return exec.Parent, failed
		}
		if !awaits(&parent, exec.ID) {
			break
		}
		id, exec = parent.ID, parent
	}
	return id, err
}

// awaits reports whether a run waits for the end of a subworkflow.
func awaits(e *history.Execution, child string) bool {
	return slices.ContainsFunc(e.Waits, func(w history.Wait) bool { return w.ChildExecutionID == child })
}
