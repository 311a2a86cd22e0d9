package graph

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// maxSincePosition is how many appends may follow a stored position while a run is driven without a rest: it bounds
// what a restart has to read.
const maxSincePosition = 64

// claim reports whether this process is to perform the effects that come if the run goes on, as far as it can. What is in
// flight elsewhere belongs to whoever holds the run's lease; once that has run out, it is taken over. Otherwise the append
// decides: it fails if another process holds the lease, which may be bringing up a subworkflow or looking after one that
// has just ended.
func (x *run) claim(ctx context.Context) (drives bool, err error) {
	if x.held || !x.elsewhere() {
		return true, nil
	}
	return x.seize(ctx)
}

// seize takes the lease, unless another process holds it: that is only read. What is in flight is then to be adopted.
// Since the driver before may have finished its work between the look at the run and the lease, the machine is brought up
// to date: errAgain says that it has changed.
func (x *run) seize(ctx context.Context) (won bool, err error) {
	if driven, err := x.drivenAfar(ctx); err != nil || driven {
		return false, err
	}
	if won, err := x.acquire(ctx); err != nil || !won {
		return false, err
	}
	before := x.m
	if err := x.sync(ctx, nil); err != nil {
		return false, err
	}
	if x.ended() {
		x.giveBack(ctx)
		return false, errAgain
	}
	x.adopting, x.started = true, false
	if x.m != before {
		return false, errAgain
	}
	return true, nil
}

// elsewhere reports whether an activity or delegate is in flight that this process does not perform.
func (x *run) elsewhere() bool {
	for _, e := range x.m.InFlight() {
		if _, isChild := e.(*machine.ChildEffect); !isChild && x.flights[e.Key()] == nil {
			return true
		}
	}
	return false
}

// commitLeft appends what loading brought to light, if anything.
func (x *run) commitLeft(ctx context.Context, y *yield) error {
	if len(x.left.Records) == 0 {
		return nil
	}
	drives, err := x.claim(ctx)
	if err != nil {
		return err
	}
	left := x.left
	x.left = machine.Batch{}
	if err := x.commit(ctx, left, drives, y); err != nil {
		return err
	}
	if x.ended() {
		x.forget()
		return errAgain
	}
	return nil
}

// commit appends a batch and notes in y what is to be done now that it is durable. After an error the machine is gone;
// errAgain means that another process wrote first.
func (x *run) commit(ctx context.Context, b machine.Batch, drives bool, y *yield) error {
	var err error
	switch {
	case len(b.Records) > 0:
		if drives, err = x.append(ctx, b, drives); err != nil {
			x.forget()
			if errors.Is(err, problem.HistoryConflict) {
				return errAgain
			}
			return err
		}
	case b.TimersChanged:
		if err := x.moveTimers(ctx, b); err != nil {
			x.forget()
			if errors.Is(err, problem.HistoryConflict) {
				return errAgain
			}
			return err
		}
	}
	y.tasks = append(y.tasks, b.Dropped...)
	for _, key := range b.Abandoned {
		x.abandon(key, y)
	}
	for _, e := range b.Effects {
		if c, isChild := e.(*machine.ChildEffect); isChild {
			x.noteChild(c.EffectKey, c.ChildExecutionID)
		}
		if drives && x.flies(e) {
			y.flights = append(y.flights, x.fly(e))
		}
	}
	if drives && x.adopting {
		x.adopt(y)
	}
	if x.ended() {
		x.landAll(errOver)
		y.parent = x.exec.Parent
	}
	x.giveBack(ctx) // unless something flies; as a rule the append has done so
	return nil
}

// append writes a batch in one transaction. It reports whether this process is to perform what the batch requests: not
// if another one turns out to hold the lease.
func (x *run) append(ctx context.Context, b machine.Batch, drives bool) (bool, error) {
	r, now := x.r, x.r.now()
	exec := x.exec
	for i := range b.Records {
		exec.Apply(b.Records[i])
	}
	status, bytes := x.m.Status(), exec.Bytes
	hb := history.Batch{
		ExecutionID: x.id, ExpectedSeq: x.exec.Seq, Records: b.Records, Execution: exec, Definition: x.unstored, Prior: x.prior,
		Bytes: &bytes, SetTimers: b.TimersChanged, Timers: storedTimers(x.id, b.Timers),
	}
	x.sincePosition++
	if !status.Terminal() && (status != machine.Running || x.sincePosition >= maxSincePosition || x.m.Resting()) {
		hb.Position = x.m.Position()
	}
	needed := x.needsLease(b, drives)
	switch {
	case needed && (!x.held || x.renewalDue(now)):
		hb.Lease = history.Lease{Owner: r.opts.Owner, Expires: now.Add(r.opts.LeaseTTL)}
	case !needed && x.held:
		hb.Lease = history.Lease{Owner: r.opts.Owner}
		hb.ReleaseLease = true
	}
	err := r.store.Append(lasting(ctx), hb)
	refused := errors.Is(err, problem.LeaseHeld)
	if refused && x.held {
		// Another process has taken the run over. What this one performed is that one's now; whatever else there is to
		// append is decided again without the lease.
		x.landAll(errDeposed)
		x.setHeld(false, time.Time{})
		return false, errAgain
	}
	if refused {
		hb.Lease = history.Lease{}
		err = r.store.Append(lasting(ctx), hb)
	}
	if err != nil {
		return false, err
	}
	exec.Bytes = bytes
	x.exec, x.unstored = exec, nil
	x.m.SetBytes(bytes)
	x.notePrior(hb.ExpectedSeq+1, b.Records)
	x.committed = now
	if hb.Position != nil {
		x.sincePosition = 0
	}
	switch {
	case hb.ReleaseLease:
		x.setHeld(false, time.Time{})
	case hb.Lease.Owner != "":
		x.setHeld(true, hb.Lease.Expires)
	}
	if b.TimersChanged {
		r.alarms.set(x, b.Timers)
	}
	x.priceKeeping(status, len(hb.Position))
	x.unsaidInput = nil
	if r.opts.OnRecord != nil {
		r.opts.OnRecord(RecordEvent{ExecutionID: x.id, Records: b.Records})
	}
	r.hub.recorded(x.id, x.m.Visits(), b.Records)
	if status != machine.Running || x.lastStatus != status {
		r.hub.wake(x.id)
	}
	x.lastStatus = status
	if r.opts.OnRecord == nil { // it may have kept them
		x.m.Recycle(b.Records)
	}
	if refused {
		drives = x.standBy(ctx, b, drives)
	}
	return drives, nil
}

// moveTimers stores when the run's timers are due now, and nothing else.
func (x *run) moveTimers(ctx context.Context, b machine.Batch) error {
	position := x.m.Position()
	err := x.r.store.Append(lasting(ctx), history.Batch{
		ExecutionID: x.id, ExpectedSeq: x.exec.Seq, Execution: x.exec, Position: position,
		SetTimers: true, Timers: storedTimers(x.id, b.Timers),
	})
	if err != nil {
		return err
	}
	x.sincePosition = 0
	x.committed = x.r.now()
	x.r.alarms.set(x, b.Timers)
	x.priceKeeping(x.m.Status(), len(position))
	return nil
}

// standBy leaves what was just committed, and what this process had in the air, to the process that holds the lease. It
// notices when it next looks after the run, or when it gives the lease back (see rest). Should it have given it back
// between the two appends, this process is the driver after all.
func (x *run) standBy(ctx context.Context, b machine.Batch, drives bool) bool {
	x.landAll(errDeposed)
	x.setHeld(false, time.Time{})
	if !drives || !slices.ContainsFunc(b.Effects, x.flies) {
		return false
	}
	won, err := x.acquire(ctx)
	if won {
		var stale bool
		if stale, err = x.behind(ctx); err == nil && !stale {
			x.adopting = true
			return true
		}
		x.giveBack(ctx)
	}
	if err != nil {
		x.r.log.Warn("lease not asked for again", logRun, x.id, logError, err)
	}
	return false
}

// needsLease reports whether this process has effects of the run to perform after the batch.
func (x *run) needsLease(b machine.Batch, drives bool) bool {
	if x.m.Status().Terminal() {
		return false
	}
	abandoned := 0
	for _, key := range b.Abandoned {
		if x.flights[key] != nil {
			abandoned++
		}
	}
	if len(x.flights) > abandoned {
		return true
	}
	return drives && (slices.ContainsFunc(b.Effects, x.flies) || x.adopting && slices.ContainsFunc(x.m.InFlight(), x.flies))
}

// priceKeeping estimates what keeping the machine of a rested run costs in memory; a run that has ended or that is
// being driven is not kept once nobody uses it.
func (x *run) priceKeeping(status machine.Status, position int) {
	if status.Terminal() || status == machine.Running && !x.m.Resting() {
		x.keepBytes.Store(0)
		return
	}
	const machineBytes = 4096
	x.keepBytes.Store(int64(machineBytes + position + jsonvalue.Size(x.m.State(), maxIdleBytes)))
}

func storedTimers(id string, ts []machine.Timer) []history.Timer {
	if len(ts) == 0 {
		return nil
	}
	out := make([]history.Timer, len(ts))
	for i, t := range ts {
		out[i] = history.Timer{ExecutionID: id, Key: t.Key, Due: t.Due}
	}
	return out
}
