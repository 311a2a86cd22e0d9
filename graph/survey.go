package graph

import (
	"context"
	"errors"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// LeftRun is a run without a driver that this process leaves to others.
type LeftRun struct {
	ExecutionID string
	// Lack is what this process lacks to go on with it, nil if it cannot even tell where the run stands (Err).
	Lack *Lack
	// Err is why the run cannot be loaded, such as DEFINITION_REQUIRED; nil with Lack.
	Err error
}

// Survey is Recover with DryRun for some runs alone. Subworkflows are runs of their own here. The error is the store's.
func (r *Runner) Survey(ctx context.Context, executionIDs ...string) (*RecoverResult, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	ctx, stop := r.untilClose(ctx)
	defer stop()
	return r.survey(ctx, len(executionIDs), func(id string) bool { return slices.Contains(executionIDs, id) })
}

// survey says what Recover would do with the runs that are wanted, without a write. It looks at runs until it has found as
// many to take over as the limit says: those that are left to others are in nobody's way.
func (r *Runner) survey(ctx context.Context, limit int, wanted func(id string) bool) (*RecoverResult, error) {
	now, res := r.now(), &RecoverResult{}
	ids, err := r.store.Orphans(ctx, now, 0)
	if err != nil {
		return nil, err
	}
	due, err := r.store.DueTimers(ctx, now, 0)
	if err != nil {
		return nil, err
	}
	seen, asked := map[string]bool{}, map[workflowName]error{}
	look := func(id string, orphaned bool) (takes bool, err error) {
		if seen[id] || !wanted(id) || len(res.ExecutionIDs)+len(res.Due) >= limit {
			return false, nil
		}
		seen[id] = true
		takes, lack, err := r.prospect(ctx, id, orphaned, asked)
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if lack != nil || err != nil {
			res.Left = append(res.Left, LeftRun{ExecutionID: id, Lack: lack, Err: err})
		}
		return takes && err == nil, nil
	}
	for _, id := range ids {
		takes, err := look(id, true)
		if err != nil {
			return nil, err
		}
		if takes {
			res.ExecutionIDs = append(res.ExecutionIDs, id)
		}
	}
	for _, t := range due {
		takes, err := look(t.ExecutionID, false)
		if err != nil {
			return nil, err
		}
		if takes {
			res.Due = append(res.Due, t)
		}
	}
	return res, nil
}

// prospect says whether Recover would go on with a run, and if not, what this process lacks for it; neither if that is
// another process's business. asked holds what came of asking for workflows.
func (r *Runner) prospect(ctx context.Context, id string, orphaned bool, asked map[workflowName]error) (takes bool, lack *Lack, err error) {
	x := r.runs.hold(id)
	defer r.runs.drop(x)
	x.mu.Lock()
	err = x.sync(ctx, nil)
	if err != nil || x.held || x.ended() || !orphaned && x.elsewhere() {
		x.mu.Unlock()
		return false, nil, err
	}
	if orphaned && x.elsewhere() {
		if _, err := x.drivenAfar(ctx); err != nil { // what is due depends on it
			x.mu.Unlock()
			return false, nil, err
		}
	}
	var children []*machine.ChildEffect
	_, due := x.nextDue(nil)
	takes = due || orphaned && len(x.left.Records)+len(x.left.Effects) > 0
	for _, e := range x.m.InFlight() {
		switch c, isChild := e.(*machine.ChildEffect); {
		case isChild:
			children = append(children, c)
		case orphaned && x.flights[e.Key()] == nil && x.fit(e):
			takes = true
		}
	}
	if l := x.lacks(); l != nil && !l.Host {
		lack = l
	}
	parent, depth := x.exec.Parent, x.m.Config().Depth
	x.mu.Unlock()

	if !takes && parent != "" { // a subworkflow leaves with its parent
		p, err := r.store.Execution(ctx, parent)
		takes = err == nil && p.Phase.Terminal()
	}
	for _, e := range children {
		if takes || !orphaned {
			break
		}
		var missing *Lack
		if takes, missing, err = r.prospectChild(ctx, id, e, depth, asked); err != nil {
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
func (r *Runner) prospectChild(ctx context.Context, parent string, e *machine.ChildEffect, depth int, asked map[workflowName]error) (takes bool, lack *Lack, err error) {
	child, err := r.store.Execution(ctx, e.ChildExecutionID)
	if err == nil {
		// An open one has its own driver, or is an orphan itself; one that is not this run's is refused, which is recorded.
		return child.Phase.Terminal() || child.Parent != parent && !adoptable(child), nil, nil
	}
	if !errors.Is(err, problem.ExecutionNotFound) {
		return false, nil, err
	}
	if depth >= r.opts.MaxDepth {
		return true, nil, nil // it is refused, which is recorded
	}
	name := nameOf(e)
	err, known := asked[name]
	if !known {
		_, err = r.resolve(ctx, name)
		asked[name] = err
	}
	if !lacksWorkflow(err) || ctx.Err() != nil {
		return err == nil, nil, err
	}
	r.unknown.note(name, err)
	return false, lackOfWorkflow(parent, e.NodeID, name, err), nil
}
