package graph

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// maxSincePosition is how many appends may follow a stored position while a run is driven without a rest: it bounds
// what a restart has to read.
const maxSincePosition = 64

// role is what this process does for a run's effects.
type role int

const (
	// driver performs the effects that come.
	driver role = iota
	// adopter performs them and also those in flight, whose driver is gone.
	adopter
	// bystander leaves them to the process that holds the lease.
	bystander
)

// claim decides the role. Effects that are in flight elsewhere belong to whoever holds the run's lease; once that has
// run out, they are taken over. A run with nothing in flight has no driver: the append decides who becomes it.
func (x *run) claim(ctx context.Context) (role, error) {
	if x.held || !x.elsewhere() {
		return driver, nil
	}
	won, err := x.acquire(ctx)
	if err != nil || !won {
		return bystander, err
	}
	return adopter, nil
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
	if len(x.left.Records) == 0 && len(x.left.Effects) == 0 {
		return nil
	}
	part, err := x.claim(ctx)
	if err != nil {
		return err
	}
	left := x.left
	x.left = machine.Batch{}
	if err := x.commit(ctx, left, part, y); err != nil {
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
func (x *run) commit(ctx context.Context, b machine.Batch, part role, y *yield) error {
	if len(b.Records) > 0 {
		if err := x.append(ctx, b, part); err != nil {
			x.forget()
			if errors.Is(err, problem.HistoryConflict) {
				return errAgain
			}
			return err
		}
	}
	for _, key := range b.Abandoned {
		x.abandon(key, y)
	}
	if part != bystander {
		for _, e := range b.Effects {
			y.flights = append(y.flights, x.fly(e))
		}
	}
	if part == adopter {
		x.adopt(y)
	}
	if x.ended() {
		x.landAll(errOver)
		y.parent = x.exec.Parent
	}
	return nil
}

// append writes a batch in one transaction.
func (x *run) append(ctx context.Context, b machine.Batch, part role) error {
	r, now := x.r, x.r.now()
	exec := x.exec
	for i := range b.Records {
		exec.Apply(b.Records[i])
	}
	status := x.m.Status()
	hb := history.Batch{
		ExecutionID: x.id, ExpectedSeq: x.exec.Seq, Records: b.Records, Execution: exec, Definition: x.unstored,
		SetTimers: b.TimersChanged, Timers: storedTimers(x.id, b.Timers),
	}
	x.sincePosition++
	if !status.Terminal() && (status != machine.Running || x.sincePosition >= maxSincePosition) {
		hb.Position = x.m.Position()
	}
	needed := x.needsLease(b, part)
	switch {
	case needed && (!x.held || x.renewalDue(now)):
		hb.Lease = history.Lease{Owner: r.opts.Owner, Expires: now.Add(r.opts.LeaseTTL)}
	case !needed && x.held:
		hb.Lease = history.Lease{Owner: r.opts.Owner}
		hb.ReleaseLease = true
	}
	if err := r.store.Append(lasting(ctx), hb); err != nil {
		return err
	}
	x.exec, x.unstored = exec, nil
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
		r.alarms.set(x.id, b.Timers)
	}
	x.priceKeeping(status, len(hb.Position))
	if r.opts.OnRecord != nil {
		r.opts.OnRecord(RecordEvent{ExecutionID: x.id, Records: b.Records})
	}
	if status != machine.Running || x.lastStatus != status {
		r.hub.wake(x.id)
	}
	x.lastStatus = status
	return nil
}

// needsLease reports whether this process has effects of the run to perform after the batch.
func (x *run) needsLease(b machine.Batch, part role) bool {
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
	switch part {
	case adopter:
		return len(x.m.InFlight()) > 0
	case driver:
		return len(b.Effects) > 0
	default:
		return false
	}
}

// priceKeeping estimates what keeping the machine of a rested run costs in memory; a run that has ended or that is
// being driven is not kept once nobody uses it.
func (x *run) priceKeeping(status machine.Status, position int) {
	if status.Terminal() || status == machine.Running {
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
