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

// SurveyRuns previews the recovery of some runs. It reads no more than needed, treats subworkflows as separate runs and ignores unknown
// ids.
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

// SurveyAll previews the recovery of all runs of the store. limit bounds the runs to claim or to fire timers of; runs left to others do
// not count. elsewhere asks for SurveyResult.Elsewhere, for which every open run is read.
func (p *Process) SurveyAll(ctx context.Context, limit int, elsewhere bool) (*SurveyResult, error) {
	s := newSurvey(p, limit)
	ids, err := p.Store.Unowned(ctx, 0)
	if err != nil {
		return nil, err
	}
	unserved, err := history.Unserved(ctx, p.Store, p.Name(), func(l history.Lane) bool { return p.share.leaves(l.Queue) }, 0)
	if err != nil {
		return nil, err
	}
	timers, err := p.Store.DueTimers(ctx, s.now, 0)
	if err != nil {
		return nil, err
	}
	for _, id := range append(ids, unserved...) {
		if err := s.look(ctx, id, true); err != nil {
			return nil, err
		}
	}
	for _, t := range timers {
		if err := s.look(ctx, t.ExecutionID, false); err != nil {
			return nil, err
		}
	}
	if elsewhere {
		if err := s.elsewhere(ctx); err != nil {
			return nil, err
		}
	}
	return &s.found, s.roots(ctx)
}

// survey collects the findings.
type survey struct {
	*Process
	now   time.Time
	limit int
	some  bool // not the whole store
	found SurveyResult
	seen  map[string]bool
	asked map[library.WorkflowName]error // the results of lookups
}

func newSurvey(p *Process, limit int) *survey {
	return &survey{Process: p, now: p.Now(), limit: limit, seen: map[string]bool{}, asked: map[library.WorkflowName]error{}}
}

// elsewhere adds the runs that other processes drive.
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

// roots adds the root runs of the subworkflows found.
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

// look adds the result for a run.
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
		// Nothing is due, as far as is known.
	case p.Lack != nil || err != nil:
		s.found.Left = append(s.found.Left, LeftRun{ExecutionID: id, Lack: p.Lack, Err: err})
	case p.Acts && orphan:
		s.found.ExecutionIDs = append(s.found.ExecutionIDs, id)
	case p.Acts:
		s.found.Due = append(s.found.Due, history.Timer{ExecutionID: id, Key: p.Due.Key, Due: p.Due.Due})
	}
	return nil
}

// preview previews the takeover of a run. It looks up the workflows of subworkflows without the lock, since a Resolver may take its time.
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

// wouldBegin reports whether a recovery would start a subworkflow, or record that it cannot; lack is set if it would leave it to others.
func (s *survey) wouldBegin(ctx context.Context, parent string, e *machine.ChildEffect, depth int) (acts bool, lack *view.Lack, err error) {
	if depth >= s.config.MaxDepth {
		return true, nil, nil // its rejection is recorded
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

// isOrphan reports whether no process drives a run that needs one, and none serves its lane.
func (s *survey) isOrphan(ctx context.Context, e *history.Execution) (bool, error) {
	if queue := s.share.queue; queue != nil {
		switch place, ready, err := queue.Place(ctx, e.ID); {
		case err != nil:
			return false, err
		case ready:
			n, err := s.share.elsewhere(ctx, place.Lane)
			return n == 0, err
		}
	}
	if owner, err := s.Store.Owner(ctx, e.ID); err != nil || owner.Live() {
		return false, err
	}
	return s.needsDriver(ctx, e)
}

// needsDriver reports whether a run needs an owner; see history.Execution.Orphaned.
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

// SurveyResult lists the runs of a survey or a recovery.
type SurveyResult struct {
	// ExecutionIDs are the runs claimed, or to be claimed, the oldest first.
	ExecutionIDs []string
	// Due are the timers that would fire, the earliest of each run that would not be claimed anyway (a survey only).
	Due []history.Timer
	// Left are the runs that would be left to others because this process lacks an executor (a survey only).
	Left []LeftRun
	// Elsewhere are the runs that need an owner and have another one (SurveyAll only).
	Elsewhere []OwnedRun
	// Roots maps each subworkflow above to its TreeRoot, if that is another run (SurveyAll only).
	Roots map[string]string
}

// LeftRun is an orphaned run that this process leaves to others.
type LeftRun struct {
	ExecutionID string
	// Lack is the missing executor, nil if the run cannot be loaded.
	Lack *view.Lack
	// Err is the reason why the run cannot be loaded, such as DEFINITION_REQUIRED; nil with Lack.
	Err error
}

// OwnedRun is a run with another owner.
type OwnedRun struct {
	ExecutionID string
	Owner       history.Owner
}

// TreeRoot returns the ancestor to drive in order to continue a run: the highest one that waits for it. A subworkflow that is rolled back
// may outlive its parent and the parent's wait.
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
