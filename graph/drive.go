package graph

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// DriveRequest continues a run.
type DriveRequest struct {
	ExecutionID string
	// Caller: the definition is needed only if it is not stored. Wait limits how long the call continues the run; the zero value means
	// Options.WaitLimit. With NoWait, the call claims the run and returns at once.
	Caller
	// StopAtTimer makes the call return when the run only waits for a future time.
	StopAtTimer bool
	// FinishBranches makes the call continue a run that waits for a host, a person or a signal until its other branches and subworkflows
	// wait, too, or have ended. Timers count unless StopAtTimer is set.
	FinishBranches bool
	// OwnedElsewhere, if not nil, is called once, in the goroutine of the call, if another process owns the run or an awaited subworkflow.
	// The call then waits for that process.
	OwnedElsewhere func(OwnedRun)
}

// Drive continues a run and its awaited subworkflows until
//
//   - it has ended,
//   - it waits for a host, a person or a signal (see DriveRequest.FinishBranches),
//   - it needs an executor that neither this nor another live process has (Run.Lacks), or no process can continue it for another reason,
//   - it waits for a time after the wait limit, or for any time with StopAtTimer, or
//   - the wait limit passes.
//
// It claims orphaned runs of the whole tree, from the root. While another process owns a part of the tree, Drive waits, and claims the part
// within a second after that process has released it or its lease has expired. Attempts of a dead owner are repeated with the same keys. Work
// that the call has started continues in the background after it has returned.
//
// Errors: EXECUTION_NOT_FOUND; DEFINITION_REQUIRED for an in-process run whose definition is neither stored nor given;
// SUBMIT_VALIDATION_ERROR for a definition or input of another run; the store's.
func (r *Runner) Drive(ctx context.Context, req DriveRequest) (*view.Run, error) {
	if err := r.enterToWrite(ctx); err != nil {
		return nil, err
	}
	defer r.p.Leave()
	if err := admit.Mode(req.Mode, problem.ValidationError); err != nil {
		return nil, err
	}
	root, err := process.TreeRoot(ctx, r.p.Store, req.ExecutionID)
	if err != nil {
		return nil, admit.NotFoundAs(err, problem.ExecutionNotFound, req.ExecutionID)
	}
	d := driving{r: r, req: req, x: r.p.Runs.Hold(req.ExecutionID), root: r.p.Runs.Hold(root), retryUnknown: true, began: time.Now()}
	defer r.p.Runs.Drop(d.x)
	defer r.p.Runs.Drop(d.root)
	d.req.Wait.Limit = r.limit(req.Wait)
	known, err := d.admit(ctx)
	if err != nil {
		return nil, err
	}
	if !known {
		return r.p.View(work.Detached(ctx), d.x)
	}
	c := r.call(d.x, req.Wait)
	c.Stand, c.AnyChange = d.stand, req.FinishBranches
	c.Until = func(_, _ *process.Standing) bool { return d.done }
	run, err := c.Answer(ctx)
	view.ModeKept(run, req.Mode)
	return run, err
}

// driving is a call of Drive.
type driving struct {
	r       *Runner
	req     DriveRequest
	x, root *run.Run
	began   time.Time
	// retryUnknown: unknown workflows are looked up again.
	retryUnknown bool
	// done: the call must return.
	done bool
	// seen is the sum of records at the last view of the run; reported is set once OwnedElsewhere has been called.
	seen     int64
	reported bool
	// idle is the sum of records at a look that found neither an owner nor an orphaned run to claim.
	idle int64
}

// admit compares the arguments of the caller with the run. A host-mediated run can be shown without its definition, but not continued.
func (d *driving) admit(ctx context.Context) (known bool, err error) {
	d.x.Lock()
	err = d.x.Admit(ctx, d.req.verified(), problem.SubmitValidationError)
	d.x.Unlock()
	if errors.Is(err, problem.DefinitionNotFound) && cmp.Or(d.req.Mode, machine.Mode(d.x.Execution().Mode)) == machine.HostMediated {
		return false, nil
	}
	return err == nil, err
}

// stand reads the status of the run, after claiming its orphaned parts, and decides whether the call must return.
func (d *driving) stand(ctx context.Context, upToDate bool, s *process.Standing) error {
	if err := d.takeOver(ctx); err != nil {
		return err
	}
	if err := d.r.p.Look(ctx, d.x, upToDate, s); err != nil {
		return err
	}
	now := d.r.p.Now()
	overdue := !s.Due.IsZero() && !s.Due.After(now)
	switch {
	case s.Status == machine.AwaitingTimer && !overdue && (d.req.StopAtTimer || !s.GoesOn(now, d.req.Wait.Limit-time.Since(d.began))):
		d.done = true
		return nil
	case s.Sum == d.seen && s.Sum != d.idle && !s.Elsewhere && !overdue && !d.req.FinishBranches:
		return nil // as it was, and driven here
	}
	d.seen = s.Sum
	v, err := d.r.p.View(ctx, d.x)
	if err != nil {
		return err
	}
	if v.Status.Terminal() || slices.ContainsFunc(v.Pending, view.Pending.NeedsInput) && !d.branchesProceed(v, now) {
		d.done = true
		return nil
	}
	owned, err := d.owned(ctx, v)
	if err != nil || owned {
		return err
	}
	d.done, err = d.stuck(ctx, v, s.Sum)
	return err
}

// branchesProceed reports whether the call continues other branches and subworkflows of a run that waits for an input.
func (d *driving) branchesProceed(v *view.Run, now time.Time) bool {
	var by time.Time
	if !d.req.StopAtTimer {
		by = now.Add(d.req.Wait.Limit - time.Since(d.began))
	}
	return d.req.FinishBranches && slices.ContainsFunc(v.Pending, func(p view.Pending) bool { return p.Proceeds(by) })
}

// takeOver claims orphaned runs of the tree that this process can perform.
func (d *driving) takeOver(ctx context.Context) error {
	retryUnknown := d.retryUnknown
	d.retryUnknown = false
	err := d.r.p.With(ctx, d.root, func(w *run.Work) error {
		if d.root.Owned() {
			return nil
		}
		if err := d.root.Refresh(ctx); err != nil || d.root.Ended() {
			return err
		}
		return d.root.TakeOver(ctx, retryUnknown, w)
	})
	if err != nil && (d.root == d.x || !errors.Is(err, problem.DefinitionNotFound)) {
		return err
	}
	d.r.p.TakeOverChildren(ctx, d.root, retryUnknown)
	return nil
}

// owned reports whether any process owns a part of the run, and calls OwnedElsewhere for the first part that another process owns.
func (d *driving) owned(ctx context.Context, v *view.Run) (owned bool, err error) {
	for _, id := range v.Executions() {
		owner, err := d.r.p.Store.Owner(ctx, id)
		if err != nil {
			return false, err
		}
		if !owner.Live() {
			continue
		}
		owned = true
		if !d.reported && owner.Process != d.r.p.Name() {
			d.reported = true
			if d.req.OwnedElsewhere != nil {
				d.req.OwnedElsewhere(OwnedRun{ExecutionID: id, Owner: owner})
			}
		}
	}
	return owned, nil
}

// stuck reports whether no process continues a run without owners, and no timer will fire before: it needs an executor that this process
// lacks, or two looks in a row found nothing to claim. One look may come between the end of a subworkflow and the next step of its parent.
func (d *driving) stuck(ctx context.Context, v *view.Run, sum int64) (bool, error) {
	l := v.Lacks
	if l != nil && l.Host {
		l = nil
	}
	if v.Ready != nil && v.Ready.Workers > 0 {
		return false, nil
	}
	now := d.r.p.Now()
	if slices.ContainsFunc(v.Pending, func(p view.Pending) bool {
		return !d.req.StopAtTimer && !p.NeedsInput() && p.Due.After(now) && (l == nil || p.ExecutionID != l.ExecutionID || p.NodeID != l.NodeID)
	}) {
		return false, nil
	}
	found, err := d.r.Survey(ctx, v.Executions()...)
	if err != nil {
		return false, err
	}
	if d.retryUnknown = len(found.ExecutionIDs)+len(found.Due) > 0; d.retryUnknown {
		return false, nil
	}
	again := d.idle == sum
	d.idle = sum
	return l != nil || again, nil
}
