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
// more seldom.
const (
	firstLook = 100 * time.Millisecond
	lastLook  = 15 * time.Second
)

// leaseLook is how often a lease is looked at that another process holds. It lasts half a minute, but whoever ends in
// order, or goes no further with a run, gives it back before.
const leaseLook = 250 * time.Millisecond

// newOwner names this process in leases.
func newOwner() string { return rand.Text() }

// heldUntil says until when another process holds a run that needs a driver; ok is false if nobody else does. While it
// lives, that process prolongs its lease; it gives it back when it ends, or performs nothing more of the run.
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

// patience is how a run is waited for in one go.
type patience struct {
	limit time.Duration
	// takeOver says that the run is to be taken over then.
	takeOver bool
	// held is the run, or the subworkflow that it waits for, that another process drives; "" if none does.
	held string
}

// patience says how to wait for a run. The first time that somebody else turns out to hold it, the command says so; it is
// then waited for until the lease ends (see leaseEnds). A run that nobody else holds is looked at again after look.
func (d *drive) patience(ctx context.Context, run *graph.Run, look time.Duration) (patience, error) {
	p := patience{limit: d.left()}
	if run.Status != machine.Running && run.Status != machine.AwaitingChild {
		return p, nil
	}
	p.takeOver = true
	now := d.app.now()
	for _, id := range []string{run.ExecutionID, run.ChildExecutionID} {
		if id == "" {
			continue
		}
		until, held, err := d.session.heldUntil(ctx, id, now)
		if err != nil {
			return p, err
		}
		if !held {
			continue
		}
		if !d.saidHeld {
			d.saidHeld = true
			d.session.flush()
			fmt.Fprintf(d.app.stderr, "run %s is held by another process, until %s if nothing more is heard of it; waiting to take it over\n", id, timeText(until))
		}
		p.held = id
		return p, nil
	}
	p.limit = min(p.limit, look)
	return p, nil
}

// leaseEnds gives a channel that is closed once a lease of another process on one of the runs has been given back or has
// run out, and what ends the watching. held is the run of which such a lease has been seen already, if any.
func (s *session) leaseEnds(ctx context.Context, now func() time.Time, ids []string, held string) (ended <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(leaseLook)
		defer ticker.Stop()
		for was := map[string]bool{held: true}; ; {
			for _, id := range ids {
				lease, err := s.store.Lease(ctx, id)
				is := lease.Owner != "" && lease.Owner != s.owner && lease.Expires.After(now())
				if err != nil || was[id] && !is {
					close(end) // who waits meets the error too
					return
				}
				was[id] = is
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return end, func() { cancel(); <-done }
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
	add := func(id string) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	add(run.ChildExecutionID)
	for _, p := range run.Pending {
		add(p.ExecutionID)
		add(p.ChildExecutionID)
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
