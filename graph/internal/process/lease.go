package process

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/internal/processid"
)

// Lease keeps the lease of this process in the store, and checks the runs that the process owns. It is renewed while the process owns
// runs, or stays, with one commit for all of them. A process that cannot renew it stops its attempts before another process can claim its runs.
type Lease struct {
	work.Env
	// Label begins the name of the process; see ProcessName.
	Label string
	// TTL is how long the lease lasts without renewal.
	TTL  time.Duration
	runs driver

	// renewing holds a value while the lease is being renewed. The store may wait for other processes meanwhile, so it is no mutex: in a
	// test with a fake clock, time does not pass for the waiters of a mutex.
	renewing chan struct{}
	renewal  chan error // a renewal requested by the loop, or nil

	mu      sync.Mutex
	process string
	alive   context.Context // ends when the lease of process is lost
	end     context.CancelCauseFunc
	lost    string    // the previous name, whose runs were given up
	renewed time.Time // the time of the last request to renew, by this process's clock
	owned   map[*run.Run]struct{}
	wake    chan struct{} // nil before the loop has started
	stays   bool          // the lease is renewed without runs, too
	free    time.Time     // when the store last named process as the owner of no run

	// lostShares is called when the lease is lost, and with it what the process holds of the shared limits.
	lostShares func()
}

func newLease(env work.Env, label string, ttl time.Duration, runs driver) *Lease {
	return &Lease{Env: env, Label: label, TTL: ttl, runs: runs, renewing: make(chan struct{}, 1)}
}

// maxLookInterval bounds the time until this process notices another process's write to an owned run, such as a cancel.
const maxLookInterval = 2 * time.Second

// Hold returns the name of the process once its lease lasts for at least two thirds of the TTL.
func (l *Lease) Hold(ctx context.Context) (process string, err error) {
	if process, fresh := l.fresh(); fresh {
		return process, nil
	}
	return l.renew(context.WithoutCancel(ctx))
}

// fresh reports whether less than a third of the lease is used up.
func (l *Lease) fresh() (process string, fresh bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	asleep := time.Now().Round(0).Sub(l.renewed.Round(0)) // the host's sleep counts, too
	return l.process, l.process != "" && max(time.Since(l.renewed), asleep) < l.TTL/3
}

// Lasts reports whether the process has a lease that is not about to end.
func (l *Lease) Lasts() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.process != "" && !l.ending()
}

// ending reports whether the lease is about to end. The lock is held.
func (l *Lease) ending() bool { return time.Since(l.renewed) >= l.TTL*5/6 }

func (l *Lease) renew(ctx context.Context) (process string, err error) {
	l.renewing <- struct{}{}
	defer func() { <-l.renewing }()
	process, fresh := l.fresh()
	if fresh {
		return process, nil
	}
	if process == "" {
		process = ProcessName(l.Label)
	}
	asked := time.Now()
	if err := l.Store.Renew(ctx, process, l.TTL); err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if process == l.lost { // too late: the runs of that name were given up
		return "", errors.Join(work.ErrLeaseLost, l.Store.Release(ctx, process))
	}
	if process != l.process {
		l.process, l.free = process, time.Time{}
		l.alive, l.end = context.WithCancelCause(l.Context)
	}
	l.renewed = asked
	return process, nil
}

// ProcessName returns a unique name for a process: a label, the host and its number, a random part, and the id by which other processes of
// the machine can tell whether it has ended.
func ProcessName(label string) string {
	host, _ := os.Hostname() // without one, the number has to do
	name := fmt.Sprintf("%s:%d/%s", host, os.Getpid(), rand.Text())
	if label != "" {
		name = label + "/" + name
	}
	if id := processid.Own(); id != "" {
		name += "/" + id
	}
	return name
}

// Alive returns the context for attempts that the process performs as an owner under a name. It ends with work.ErrLeaseLost when the
// lease is lost, even while the owned runs are locked.
func (l *Lease) Alive(process string) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if process == l.process && !l.ending() {
		return l.alive
	}
	ctx, end := context.WithCancelCause(l.Context)
	end(work.ErrLeaseLost)
	return ctx
}

// Owns records that the process now owns a run under a name, or no longer does.
func (l *Lease) Owns(x *run.Run, process string, owns bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !owns {
		delete(l.owned, x)
		return
	}
	if process != l.process || l.ending() { // the commit took longer than the lease lasts
		l.Go(func() {
			l.giveUp()
			l.runs.loseLease(x, process)
		})
	}
	if l.owned == nil {
		l.owned = map[*run.Run]struct{}{}
	}
	l.owned[x] = struct{}{}
	l.start()
}

// Stay keeps the lease while the process owns no runs, too.
func (l *Lease) Stay() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stays = true
	l.start()
}

// start starts or wakes the loop. The lock is held.
func (l *Lease) start() {
	if l.wake == nil {
		l.wake = make(chan struct{}, 1)
		l.Go(l.loop)
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// kept reports whether the lease has to be renewed.
func (l *Lease) kept() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stays || len(l.owned) > 0
}

// Process returns the name of the process, "" before it has first owned a run.
func (l *Lease) Process() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.process
}

func (l *Lease) held() []*run.Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	xs := make([]*run.Run, 0, len(l.owned))
	for x := range l.owned {
		xs = append(xs, x)
	}
	return xs
}

// loop renews the lease and checks the runs while there are any.
func (l *Lease) loop() {
	every := min(l.TTL/3, maxLookInterval)
	var tick <-chan time.Time // nil while the process owns nothing
	looking := make(chan struct{}, 1)
	for {
		select {
		case <-l.Context.Done():
			return
		case <-l.wake:
			if tick == nil {
				tick = time.After(every)
			}
			continue
		case <-tick:
		}
		if tick = nil; !l.kept() {
			continue
		}
		tick = time.After(every)
		l.keep()
		select {
		case looking <- struct{}{}: // a busy run may delay these checks, but not the renewals
			l.Go(func() {
				l.look()
				<-looking
			})
		default:
		}
	}
}

// keep renews the lease after a third of its time. If that fails until 5/6 of its time, the process gives up all runs and continues under
// another name.
func (l *Lease) keep() {
	if _, fresh := l.fresh(); fresh {
		return
	}
	l.mu.Lock()
	left := l.TTL*5/6 - time.Since(l.renewed)
	l.mu.Unlock()
	select {
	case <-l.renewal: // it failed after keep had given it up
		l.renewal = nil
	default:
	}
	if l.renewal == nil { // else the store has not answered yet
		done := make(chan error, 1)
		l.renewal = done
		l.Go(func() {
			_, err := l.renew(context.WithoutCancel(l.Context))
			done <- err
		})
	}
	limit := time.NewTimer(min(max(left, 0), l.TTL/3))
	defer limit.Stop()
	select {
	case err := <-l.renewal:
		if l.renewal = nil; err == nil {
			return
		}
		l.Log.Warn("lease not renewed", run.LogError, err)
	case <-limit.C:
	case <-l.Context.Done():
		return
	}
	l.giveUp()
}

// giveUp stops driving all runs if the lease is about to end.
func (l *Lease) giveUp() {
	l.mu.Lock()
	process := l.process
	over := process != "" && l.ending()
	if over {
		l.process, l.lost = "", process
		l.end(work.ErrLeaseLost)
	}
	l.mu.Unlock()
	if !over {
		return
	}
	l.Log.Warn("lease lost: it could not be renewed in time")
	if l.lostShares != nil {
		l.lostShares()
	}
	l.Go(func() {
		for _, x := range l.held() {
			l.runs.loseLease(x, process)
		}
	})
}

// note keeps whether the store names the process as the owner of a run. It was asked at a time.
func (l *Lease) note(process string, owns bool, asked time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if process == l.process && !owns {
		l.free = asked
	}
}

// idle reports whether the process owned no run a moment ago.
func (l *Lease) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.owned) == 0 && !l.free.IsZero() && time.Since(l.free) <= maxLookInterval
}

// look compares the owned runs with their state in the store. The store may name this process as the owner of runs although it drives none.
func (l *Lease) look() {
	xs := l.held()
	process := l.Process()
	if process == "" || l.idle() {
		return
	}
	stored, err := l.Store.Owned(l.Context, process)
	if err != nil {
		if l.Context.Err() == nil {
			l.Log.Warn("check of owned runs failed", run.LogError, err)
		}
		return
	}
	for _, x := range xs {
		seq := stored[x.ID()]
		delete(stored, x.ID())
		if x.NeedsLook(seq) {
			l.runs.look(x, seq)
		}
	}
	for id := range stored {
		l.runs.takeBack(id, process)
	}
}

// Release ends the lease, so that others need not wait for it to run out.
func (l *Lease) Release(ctx context.Context) error {
	process := l.Process()
	if process == "" {
		return nil
	}
	return l.Store.Release(ctx, process)
}
