package run

import (
	"context"
	"errors"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// maxSincePosition bounds the appends between two stored positions of a busy run, and so the records that a restart reads.
const maxSincePosition = 64

// intent describes the effect of a commit on the ownership of the run.
type intent struct {
	// mayOwn: no other process owned the run at the last check, so this process performs the resulting effects that it can.
	mayOwn bool
	// fenced: nothing is committed if another process owns the run.
	fenced bool
}

// commitUnrecorded appends the records that loading found missing.
func (x *Run) commitUnrecorded(ctx context.Context, w *Work) error {
	if len(x.unrecorded.Records) == 0 {
		return nil
	}
	mayOwn, err := x.mayOwn(ctx)
	if err != nil {
		return err
	}
	b := x.unrecorded
	x.unrecorded = machine.Batch{}
	if err := x.commit(ctx, b, intent{mayOwn: mayOwn}, w); err != nil {
		return err
	}
	if x.Ended() {
		x.forget()
		return ErrConflict
	}
	return nil
}

// commit appends a batch and adds its consequences to w. After an error the machine is dropped; ErrConflict reports that another process
// wrote first.
func (x *Run) commit(ctx context.Context, b machine.Batch, i intent, w *Work) error {
	var err error
	drives := i.mayOwn
	switch {
	case len(b.Records) > 0:
		drives, err = x.append(ctx, b, i, w)
	case b.TimersChanged:
		err = x.moveTimers(ctx, b)
	}
	if err != nil {
		x.forget()
		if errors.Is(err, problem.HistoryConflict) {
			return ErrConflict
		}
		return err
	}
	w.DropTasks = append(w.DropTasks, b.Dropped...)
	for _, key := range b.Abandoned {
		x.abort(key, w)
	}
	for _, e := range b.Effects {
		if c, isChild := e.(*machine.ChildEffect); isChild {
			x.noteChild(c.EffectKey, c.ChildExecutionID)
		}
		if drives && x.performs(e) {
			a := x.begin(e, w)
			if len(b.Records) == 0 { // it was requested before
				a.Restarted = x.env.Now()
			}
		}
	}
	x.redispatch(w)
	if x.Ended() {
		x.abortAll(work.ErrUnwanted)
		w.NotifyParent = x.exec.Parent
		x.become(Ended)
		return nil
	}
	x.disownIfIdle(ctx) // usually the append has done so
	return nil
}

// append writes a batch in one transaction. drives is false if another process turns out to own the run; it performs the requests of the
// batch then.
func (x *Run) append(ctx context.Context, b machine.Batch, i intent, w *Work) (drives bool, err error) {
	x.env.Performer.Describe(x.id, x.exec.Bytes, &b)
	exec := x.exec
	exec.ApplyAll(b.Records)
	status, bytes := x.m.Status(), exec.Bytes
	hb := history.Batch{
		ExecutionID: x.id, ExpectedSeq: x.exec.Seq, Records: b.Records, Execution: exec, Definition: x.unstored, Subworkflows: x.unstoredChildren, Prior: x.prior,
		Bytes: &bytes, SetTimers: b.TimersChanged, Timers: StoredTimers(x.id, b.Timers),
		Deliveries: x.env.Outbox.Deliveries(x.exec.Phase, &exec, b.Records, func() *view.Run { return x.prospectiveView(ctx, &exec, b.Records) }),
	}
	x.sincePosition++
	if !status.Terminal() && (status != machine.Running || x.sincePosition >= maxSincePosition || x.m.Resting() || x.m.Walking()) {
		hb.Position = x.m.NextPosition()
	}
	if hb.Ready = x.readiness(&exec, b, i.mayOwn); hb.Ready != nil && hb.ExpectedSeq == 0 && exec.Parent == "" {
		if err := x.env.Sharing.Admit(ctx, hb.Ready.Lane); err != nil {
			return false, err
		}
	}
	if err := x.setOwner(ctx, &hb, b, i); err != nil {
		return false, err
	}
	err = x.env.Store.Append(work.Detached(ctx), hb)
	refused := errors.Is(err, problem.LeaseHeld)
	switch {
	case refused && x.Owned():
		// Another process has claimed the run and performs these attempts again. The rest of the batch is decided again.
		x.Lose(work.ErrLeaseLost)
		return false, ErrConflict
	case refused && i.fenced:
		return false, err
	case refused:
		hb.Owner, hb.Disown, hb.Ready = "", false, nil
		err = x.env.Store.Append(work.Detached(ctx), hb)
	}
	if err != nil {
		return false, err
	}
	exec.Bytes = bytes
	x.env.Tree.Spent(ctx, &x.exec, &exec)
	x.setExecution(exec)
	x.unstored, x.unstoredChildren = nil, nil
	x.m.SetBytes(bytes)
	x.notePrior(hb.ExpectedSeq+1, b.Records)
	if hb.Position != nil {
		x.sincePosition = 0
	}
	switch {
	case status.Terminal():
	case hb.Disown:
		x.become(Following)
	case hb.Owner != "" && !x.Owned():
		x.process = hb.Owner
		x.become(Claimed)
	}
	if b.TimersChanged {
		x.env.Process.Timers(x, b.Timers)
	}
	x.estimateCost(status, len(hb.Position))
	if len(hb.Deliveries) > 0 {
		x.env.Outbox.Stored(hb.Deliveries)
	}
	x.env.Process.Recorded(x, b.Records)
	kept := x.committed(b.Records)
	w.Changed = w.Changed || status != machine.Running || x.lastStatus != status
	x.lastStatus = status
	if !kept {
		x.m.Recycle(b.Records)
	}
	if refused {
		return i.mayOwn && x.claimLeft(ctx, b), nil
	}
	if hb.Ready != nil {
		x.startedHere = false
		return false, nil
	}
	return i.mayOwn, nil
}

// setOwner sets the owner of the run in a batch.
func (x *Run) setOwner(ctx context.Context, hb *history.Batch, b machine.Batch, i intent) (err error) {
	switch {
	case hb.Ready == nil && x.needsOwner(b, i.mayOwn):
		if hb.Owner = x.process; !x.Owned() {
			hb.Owner, err = x.env.Process.Hold(ctx)
		}
	case x.Owned():
		hb.Owner, hb.Disown = x.process, true
	case i.fenced:
		hb.Owner, err = x.env.Process.Hold(ctx)
		hb.Disown = true
	}
	return err
}

// needsOwner reports whether this process has effects of the run to perform after the batch.
func (x *Run) needsOwner(b machine.Batch, mayOwn bool) bool {
	if x.m.Status().Terminal() {
		return false
	}
	if x.attemptsAfter(b) > 0 {
		return true
	}
	return mayOwn && (slices.ContainsFunc(b.Effects, x.performs) ||
		x.state == Claimed && slices.ContainsFunc(x.m.InFlight(), x.performs) ||
		!x.Owned() && slices.ContainsFunc(x.m.InFlight(), func(e machine.Effect) bool {
			_, isChild := e.(*machine.ChildEffect) // it proceeds by itself, or is found as an orphan
			return !isChild && x.performs(e)
		}))
}

// claimLeft follows an append that was rejected as the owner's and then written without an owner. The owner notices the new records at
// its next check, or when it disowns the run. If it disowned the run between the two appends, this process becomes the owner. claimLeft
// reports whether it did.
func (x *Run) claimLeft(ctx context.Context, b machine.Batch) bool {
	x.abortAll(work.ErrLeaseLost)
	if !slices.ContainsFunc(b.Effects, x.performs) {
		return false
	}
	claimed, err := x.claimInStore(ctx)
	if err == nil && claimed {
		var stale bool
		if stale, err = x.behind(ctx); err == nil && !stale {
			return true
		}
		x.disown(ctx)
	}
	if err != nil {
		x.env.Log.Warn("run not claimed", LogRun, x.id, LogError, err)
	}
	return false
}

// moveTimers stores the new due times of the run's timers.
func (x *Run) moveTimers(ctx context.Context, b machine.Batch) error {
	position := x.m.NextPosition()
	err := x.env.Store.Append(work.Detached(ctx), history.Batch{
		ExecutionID: x.id, ExpectedSeq: x.exec.Seq, Execution: x.exec, Position: position,
		SetTimers: true, Timers: StoredTimers(x.id, b.Timers),
	})
	if err != nil {
		return err
	}
	x.sincePosition = 0
	x.env.Process.Timers(x, b.Timers)
	x.estimateCost(x.m.Status(), len(position))
	return nil
}
