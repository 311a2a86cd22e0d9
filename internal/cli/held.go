package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// A run that another process drives, or drove until it was killed, is held by that process's lease.

// leaseHorizon is longer than any lease lasts.
const leaseHorizon = time.Hour

// A run that goes on by itself is looked after at first soon, since it may come to what is missing here, and then ever
// more seldom: whoever drives it may end meanwhile.
const (
	firstLook = 100 * time.Millisecond
	leaseLook = 15 * time.Second
)

// newOwner names this process in leases.
func newOwner() string { return rand.Text() }

// heldUntil says until when another process holds a run that needs a driver; ok is false if nobody else does. While it
// lives, that process prolongs its lease, so that the time is the earliest at which the run can be taken over.
func (s *session) heldUntil(ctx context.Context, id string, now time.Time) (until time.Time, ok bool, err error) {
	lease, err := s.store.Lease(ctx, id)
	if err != nil || lease.Owner == "" || lease.Owner == s.owner || !lease.Expires.After(now) {
		return time.Time{}, false, err
	}
	needy, err := s.store.Orphans(ctx, now.Add(leaseHorizon), 0)
	return lease.Expires, slices.Contains(needy, id), err
}

// heldRuns lists the runs that need a driver and that other processes hold, except those that are driven here, and
// when the first of their leases ends.
func (s *session) heldRuns(ctx context.Context, now time.Time, here []string) (ids []string, first time.Time, err error) {
	all, err := s.store.Orphans(ctx, now.Add(leaseHorizon), 0)
	if err != nil {
		return nil, first, err
	}
	for _, id := range all {
		if slices.Contains(here, id) {
			continue
		}
		lease, err := s.store.Lease(ctx, id)
		if err != nil {
			return nil, first, err
		}
		if lease.Owner != "" && lease.Owner != s.owner && lease.Expires.After(now) {
			ids = append(ids, id)
			if first.IsZero() || lease.Expires.Before(first) {
				first = lease.Expires
			}
		}
	}
	return ids, first, nil
}

// patience gives how long to wait for a run in one go, and whether it is to be taken over then. The first time that
// somebody else turns out to hold it, the command says so. A run that nobody else holds is looked at again after look.
func (d *drive) patience(ctx context.Context, run *graph.Run, look time.Duration) (limit time.Duration, takeOver bool, err error) {
	limit = d.left()
	if run.Status != machine.Running && run.Status != machine.AwaitingChild {
		return limit, false, nil
	}
	now := d.app.now()
	for _, id := range []string{run.ExecutionID, run.ChildExecutionID} {
		if id == "" {
			continue
		}
		until, held, err := d.session.heldUntil(ctx, id, now)
		if err != nil {
			return limit, false, err
		}
		if !held {
			continue
		}
		if !d.saidHeld {
			d.saidHeld = true
			d.session.flush()
			fmt.Fprintf(d.app.stderr, "run %s is held by another process until %s at least; waiting to take it over\n", id, timeText(until))
		}
		return min(limit, max(until.Sub(now), 0)+50*time.Millisecond), true, nil
	}
	return min(limit, look), true, nil
}

// leftToNobody reports whether the run waits for what is missing here, for nothing that comes by itself, that nobody
// performs anything of it, and that this process would not take over anything of it either.
func (d *drive) leftToNobody(ctx context.Context, run *graph.Run) (bool, error) {
	l, now := run.Lacks, d.app.now()
	if l == nil || l.Host || slices.ContainsFunc(run.Pending, func(p graph.Pending) bool {
		return p.Due.After(now) && (p.ExecutionID != l.ExecutionID || p.NodeID != l.NodeID)
	}) {
		return false, nil
	}
	if driven, err := d.session.driven(ctx, run, now); driven || err != nil {
		return false, err
	}
	found, err := d.session.runner.Survey(ctx, family(run)...)
	return err == nil && len(found.ExecutionIDs)+len(found.Due) == 0, err
}

// family gives a run and its subworkflows, as far as it waits for them.
func family(run *graph.Run) []string {
	ids := []string{run.ExecutionID}
	for _, p := range run.Pending {
		ids = append(ids, p.ExecutionID)
		if p.ChildExecutionID != "" {
			ids = append(ids, p.ChildExecutionID)
		}
	}
	return ids
}

// driven reports whether a process, this one included, performs something of a run or of the subworkflows that it waits
// for.
func (s *session) driven(ctx context.Context, run *graph.Run, now time.Time) (bool, error) {
	for _, id := range family(run) {
		lease, err := s.store.Lease(ctx, id)
		if err != nil || lease.Owner != "" && lease.Expires.After(now) {
			return true, err
		}
	}
	return false, nil
}

// takeOver makes this process the driver of a run that has lost its own; a run that has one is left alone. A subworkflow
// is taken over with the run that it belongs to, which waits for it.
func (s *session) takeOver(ctx context.Context, id string, caller graph.Caller) (*graph.Run, error) {
	top, err := s.top(ctx, id)
	if err != nil {
		return nil, err
	}
	req := graph.StartRequest{ExecutionID: top.ID, DefinitionRef: top.DefinitionHash, AllowExisting: true, Wait: caller.Wait}
	if top.ID == id && caller.Definition != nil {
		req.Definition, req.DefinitionRef = caller.Definition, ""
	}
	run, err := s.runner.Start(ctx, req)
	if err != nil || top.ID == id {
		return run, err
	}
	return s.runner.Status(ctx, graph.StatusRequest{ExecutionID: id, Wait: caller.Wait})
}

// top gives the run that a subworkflow belongs to, or the run itself.
func (s *session) top(ctx context.Context, id string) (history.Execution, error) {
	top, err := s.store.Execution(ctx, id)
	for err == nil && top.Parent != "" {
		top, err = s.store.Execution(ctx, top.Parent)
	}
	return top, err
}
