package run

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// A run that this process does not perform, but another process could, is ready (history.Queue): it is stored without an owner, in the lane
// of its next attempt. A run becomes ready in one of these ways:
//
//	its next attempt needs an executor that this process lacks, or this process performs nothing     with the append that requests it
//	its next attempt belongs to another queue                                                         with that append
//	its next attempt finds no room here while another process has room                                with that append
//	its next attempt has waited here while another process has room                                   Give
//	this process drains, or leaves an attempt in flight to others                                     disown
//
// Only a run without attempts in flight here becomes ready, so giving it away repeats nothing.

// minStay is the time that a claimed run stays with its process, so that two processes do not pass it to and fro.
const minStay = time.Second

// Sharing is how the runs of a process are shared with others.
type Sharing struct {
	// None: this process performs no activities and delegates. It starts runs and applies inputs.
	None bool
	// Gives: runs are given away to a process with more room.
	Gives bool
	// Queue keeps the ready runs; nil if the store does not: then runs that are left to others are found by their searches.
	Queue history.Queue
	// Limits returns the shared limits of classes, with their use.
	Limits func(ctx context.Context, classes []string) ([]history.LimitUse, error)
	// FairLabel is the label whose values take turns; "" lets the trees of runs do so.
	FairLabel string
	// Workers returns the number of live processes that perform the runs of a lane.
	Workers func(ctx context.Context, l history.Lane) (int, error)
	// Others reports whether another process performs the runs of a lane and has room. It returns at once.
	Others func(history.Lane) bool
	// Admit returns QUEUE_FULL if a start may not wait in a lane.
	Admit func(context.Context, history.Lane) error
	// Leaves reports whether the runs of a queue are left to other processes.
	Leaves func(queue string) bool
	// Taking reports whether TakeReady may be about to continue a run that this process has claimed.
	Taking func(executionID string) bool
}

// queued reports whether an attempt of a node waits for its turn. Otherwise it reserves a place for it.
func (x *Run) queued(n *definition.Node) bool {
	if s := &x.env.Sharing; s.Queue != nil && (s.None || x.env.draining()) {
		return true
	}
	if x.leaves(n) || n.QueueTimeout > 0 && !x.startedHere && x.LackOf(n) != nil {
		return true // its time to wait for another process has begun
	}
	release, ok := x.env.Performer.Reserve(n)
	if ok {
		x.places = append(x.places, release)
	}
	return !ok
}

// place returns the function that gives back a reserved place, nil without one.
func (x *Run) place() (release func()) {
	if len(x.places) > 0 {
		release, x.places = x.places[0], x.places[1:]
	}
	return release
}

// returnPlaces gives back the reserved places that no attempt has taken.
func (x *Run) returnPlaces() {
	for _, release := range x.places {
		release()
	}
	x.places = nil
}

// readiness returns where the run becomes ready with a batch; nil if it does not, because this process continues to drive it or nothing is left to perform.
func (x *Run) readiness(exec *history.Execution, b machine.Batch, mayOwn bool) *history.Ready {
	s := &x.env.Sharing
	if s.Queue == nil || !mayOwn || x.m.Status().Terminal() || x.attemptsAfter(b) > 0 {
		return nil
	}
	kept := func(e machine.Effect) bool {
		_, turn := e.(*machine.TurnEffect)
		return x.performs(e) && !(turn && x.givesNow(exec, e))
	}
	for _, e := range b.Effects {
		if kept(e) {
			return nil
		}
	}
	inFlight := x.m.InFlight()
	if !x.Owned() || x.state == Claimed {
		for _, e := range inFlight {
			if _, isChild := e.(*machine.ChildEffect); !isChild && kept(e) {
				return nil
			}
		}
	}
	return x.readyWith(exec, inFlight)
}

// givesNow reports whether an attempt that waits for its turn is given away at once.
func (x *Run) givesNow(exec *history.Execution, e machine.Effect) bool {
	s := &x.env.Sharing
	return s.Gives && x.env.Performer.Turns.Free() == 0 && x.mayMove() && s.Others(x.laneOf(exec, e))
}

// mayMove reports whether the run has stayed here long enough to be given away.
func (x *Run) mayMove() bool { return x.claimed.IsZero() || time.Since(x.claimed) >= minStay }

// readyWith returns where the run is ready, with the effects in flight: in the lane of the first one that any process may perform. It is nil without one.
func (x *Run) readyWith(exec *history.Execution, inFlight []machine.Effect) *history.Ready {
	for _, e := range inFlight {
		if _, isChild := e.(*machine.ChildEffect); isChild {
			continue // it proceeds by itself, or is found as an orphan
		}
		return &history.Ready{Lane: x.laneOf(exec, e), Priority: x.m.Config().Priority, Tenant: x.tenant(exec)}
	}
	return nil
}

// laneOf returns the lane of a run whose next effect is e.
func (x *Run) laneOf(exec *history.Execution, e machine.Effect) history.Lane {
	n := x.prog.Node(e.Base().NodeID)
	return history.Lane{Queue: queueOf(exec, n), Needs: work.Needs(n)}
}

// queueOf returns the queue of the attempts of a node.
func queueOf(exec *history.Execution, n *definition.Node) string {
	return cmp.Or(n.Queue, exec.Queue, history.DefaultQueue)
}

// leaves reports whether the attempts of a node are left to the workers of another queue. A run for which nobody has named a queue stays with the
// process that has started or claimed it.
func (x *Run) leaves(n *definition.Node) bool {
	stays := !x.prog.Routes() && x.exec.Queue == "" && (x.startedHere || x.Owned())
	return !stays && n.Type.Info().Attempted() && x.env.Sharing.Leaves != nil && x.env.Sharing.Leaves(queueOf(&x.exec, n))
}

// tenant returns the tenant of the run.
func (x *Run) tenant(exec *history.Execution) string {
	if v := exec.Labels[x.env.Sharing.FairLabel]; v != "" {
		return v
	}
	root := x.id
	if exec.Parent != "" {
		root, _, _ = strings.Cut(x.id, history.ChildMark)
	}
	return root
}

// attemptsAfter returns the number of attempts that remain in flight here after a batch.
func (x *Run) attemptsAfter(b machine.Batch) int {
	n := len(x.attempts)
	for _, key := range b.Abandoned {
		if x.attempts[key] != nil {
			n--
		}
	}
	return n
}

// Give gives the run away, if all of its attempts here wait for their turn and another process has room for it.
func (x *Run) Give(ctx context.Context) {
	if x.state != Driving || x.m == nil || len(x.attempts) == 0 || !x.mayMove() {
		return
	}
	for _, a := range x.attempts {
		if e, turn := a.Effect.(*machine.TurnEffect); !turn || !x.env.Sharing.Others(x.laneOf(&x.exec, e)) {
			return
		}
	}
	x.abortAll(work.ErrLeaseLost)
	x.disown(ctx)
}

// TakeReady continues a run that was ready, and that this process has claimed under a name. r is the run as the claim has read it, zero if it
// has not.
func (x *Run) TakeReady(ctx context.Context, process string, r *history.ReadyRun, w *Work) error {
	if x.Owned() {
		return nil
	}
	if x.state == Ended { // its id has been used again
		x.forget()
	}
	x.process, x.claimed, x.startedHere = process, time.Now(), false
	x.become(Claimed)
	err := x.refreshTo(ctx, r)
	if err == nil && !x.Ended() {
		err = x.drive(ctx, w)
	}
	if err != nil && x.Owned() {
		x.disown(ctx) // other processes find it
	}
	return err
}
