package graph

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// A lease in the store says which process performs a run's effects, and until when. It is taken in the very
// transaction that commits the first intent, given back in the one in which the run comes to rest, and renewed in
// between. A run with something in flight that nobody holds a lease of has lost its driver.

// acquire takes or extends the lease, unless another process holds it.
func (x *run) acquire(ctx context.Context) (bool, error) {
	now := x.r.now()
	end := now.Add(x.r.opts.LeaseTTL)
	ok, err := x.r.store.AcquireLease(lasting(ctx), x.id, x.r.opts.Owner, now, end)
	if err == nil {
		x.setHeld(ok, end)
	}
	return ok, err
}

// drivenAfar reports whether another process holds the lease, and notes until when the run has been driven.
func (x *run) drivenAfar(ctx context.Context) (bool, error) {
	lease, err := x.r.store.Lease(ctx, x.id)
	if err != nil {
		return false, err
	}
	x.driven = lease.Expires
	return lease.Owner != "" && lease.Owner != x.r.opts.Owner && lease.Expires.After(x.r.now()), nil
}

// giveBack releases the lease once nothing is in flight here any more: what is left then is another process's.
func (x *run) giveBack(ctx context.Context) {
	if x.held && len(x.flights) == 0 {
		x.giveBackAsOf(lasting(ctx), x.r.now())
	}
}

// giveBackAsOf gives the lease back. If something that is in flight is left to others, the lease stays in the store as one
// that ran out when the run was last driven: who can take it up has its time from then on (see untaken).
func (x *run) giveBackAsOf(ctx context.Context, driven time.Time) {
	var err error
	if driven.IsZero() || x.ended() || x.m != nil && len(x.flights) == 0 && !x.elsewhere() {
		err = x.r.store.ReleaseLease(ctx, x.id, x.r.opts.Owner)
	} else {
		_, err = x.r.store.AcquireLease(ctx, x.id, x.r.opts.Owner, x.r.now(), driven)
	}
	if err != nil {
		x.r.log.Warn("lease not given back", logRun, x.id, logError, err)
	}
	x.setHeld(false, time.Time{})
}

// rest gives the lease back once nothing is in flight any more, and then looks whether another process committed
// something meanwhile and left it to the lease's holder.
func (x *run) rest(ctx context.Context, y *yield) error {
	if !x.held || len(x.flights) > 0 {
		return nil
	}
	x.giveBack(ctx)
	seen := x.m
	if err := x.sync(ctx, nil); err != nil {
		return err
	}
	if x.m == nil || x.m == seen {
		return nil
	}
	if abandoned, err := x.abandoned(ctx); err != nil || !abandoned {
		return err
	}
	return x.takeOver(ctx, y)
}

// lose stops driving without a word to the store: the lease runs out and somebody takes the run over.
func (x *run) lose(cause error) {
	x.landAll(cause)
	x.forget()
	x.setHeld(false, time.Time{})
	x.r.hub.wake(x.id)
}

func (x *run) setHeld(held bool, end time.Time) {
	if held != x.held {
		x.r.keeper.note(x, held)
		if held { // the table keeps it: another *run of the same id would take the same lease, and perform everything again
			x.r.runs.retain(x)
		} else {
			defer x.r.runs.drop(x)
		}
	}
	x.held, x.leaseEnd = held, end
	x.adopting = x.adopting && held
}

// renewalDue reports whether a third of the lease is used up.
func (x *run) renewalDue(now time.Time) bool {
	return x.leaseEnd.Sub(now) < x.r.opts.LeaseTTL*2/3
}

// maxKeepInterval bounds how long another process's write to a run that is driven here, such as a cancel, may go
// unnoticed while nothing happens here.
const maxKeepInterval = 2 * time.Second

// keeper looks after the runs that this process drives: it renews their leases and notices what others wrote to them.
// Its goroutine starts with the first such run.
type keeper struct {
	r       *Runner
	mu      sync.Mutex
	held    map[*run]struct{}
	started bool
	wake    chan struct{}
}

func (k *keeper) init(r *Runner) {
	k.r, k.held, k.wake = r, map[*run]struct{}{}, make(chan struct{}, 1)
}

// note adds or removes a run. The caller is a counted task.
func (k *keeper) note(x *run, held bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !held {
		delete(k.held, x)
		return
	}
	k.held[x] = struct{}{}
	if !k.started {
		k.started = true
		k.r.tasks.Go(k.loop)
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *keeper) runs() []*run {
	k.mu.Lock()
	defer k.mu.Unlock()
	xs := make([]*run, 0, len(k.held))
	for x := range k.held {
		xs = append(xs, x)
	}
	return xs
}

func (k *keeper) loop() {
	every := min(k.r.opts.LeaseTTL/3, maxKeepInterval)
	var tick <-chan time.Time // nil while there is nothing to keep
	for {
		select {
		case <-k.r.ctx.Done():
			return
		case <-k.wake:
			if tick == nil {
				tick = time.After(every)
			}
			continue
		case <-tick:
		}
		xs := k.runs()
		for _, x := range xs {
			k.r.keep(x)
		}
		if tick = nil; len(xs) > 0 {
			tick = time.After(every)
		}
	}
}

// keep renews the lease of a run and takes in what other processes wrote to it.
func (r *Runner) keep(x *run) {
	r.runs.retain(x)
	defer r.runs.drop(x)
	ctx := lasting(r.ctx)
	var y yield
	x.mu.Lock()
	err := x.keep(ctx, &y)
	x.mu.Unlock()
	if err != nil {
		r.log.Warn("run not looked after", logRun, x.id, logError, err)
	}
	r.carry(ctx, x, &y)
}

func (x *run) keep(ctx context.Context, y *yield) error {
	if !x.held {
		return nil
	}
	now := x.r.now()
	if x.renewalDue(now) {
		switch ok, err := x.acquire(ctx); {
		case err != nil:
			return err
		case !ok:
			x.lose(errDeposed)
			return nil
		}
	}
	if now.Sub(x.committed) < maxKeepInterval/2 { // the last commit would have noticed what others wrote
		return x.takeUpChildren(ctx, y)
	}
	before := x.m
	if err := x.sync(ctx, nil); err != nil {
		return err
	}
	if !x.ended() && (x.m != before || x.adopting) {
		if err := x.commitLeft(ctx, y); err != nil && !errors.Is(err, errAgain) {
			return err
		}
		if x.m != nil {
			x.adopt(y)
		}
	}
	if err := x.takeUpChildren(ctx, y); err != nil {
		return err
	}
	return x.rest(ctx, y)
}

// releaseLeases gives back the leases of all runs, so that others need not wait for them to run out.
func (t *runTable) releaseLeases() {
	for _, x := range t.r.keeper.runs() {
		if !x.mu.TryLock() {
			continue // an executor's last commit hangs; the lease runs out by itself
		}
		if x.held {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			x.giveBackAsOf(ctx, t.r.now())
			cancel()
		}
		x.mu.Unlock()
	}
}

// errLost is why a run is no longer driven here after its store failed for good.
func errLost(err error) error {
	return problem.New(problem.Internal, "the run cannot be recorded here any more").WithCause(err)
}
