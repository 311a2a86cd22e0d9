package graph

import (
	"sync"
	"time"
)

// The rhythm of Options.Background.
const (
	// watchDelay leaves the embedder time to register its workflows before the first look.
	watchDelay = 250 * time.Millisecond
	// watchInterval is how often the store is searched for orphans and foreign timers.
	watchInterval = 10 * time.Second
	// watchGrace is how long a foreign timer may be overdue before it is fired here.
	watchGrace = time.Second
	watchLimit = 500
	// glanceInterval is how often, between two searches, it is asked whether the earliest timer is overdue: its process may
	// have died after it had set one that was due before the next search.
	glanceInterval = time.Second
)

// watchEvery is the pause between two looks: leases that are shorter are looked after more often.
func (r *Runner) watchEvery() time.Duration { return min(watchInterval, r.opts.LeaseTTL/2) }

// watch keeps looking for runs whose driver is gone and for timers that other processes set.
func (r *Runner) watch() {
	every := r.watchEvery()
	if !r.pause(watchDelay) {
		return
	}
	for {
		r.wakeful.beat(r.now())
		seen := r.now()
		r.patrol()
		for left := every; left > 0; left -= glanceInterval {
			if !r.pause(min(left, glanceInterval)) {
				return
			}
			if left > glanceInterval {
				seen = r.glance(seen)
			}
		}
	}
}

// glance fires the timers that have become overdue since another look: nobody who lives has done so. As a rule it asks for
// the earliest timer and nothing else. Those that were overdue before, which may be left to others, are looked at by each
// patrol alone; if there are very many, so are all.
func (r *Runner) glance(since time.Time) (now time.Time) {
	now = r.now()
	overdue := now.Add(-watchGrace)
	if next, ok, err := r.store.NextTimer(r.ctx); err != nil || !ok || next.After(overdue) {
		return now
	}
	timers, err := r.store.DueTimers(r.ctx, overdue, watchLimit)
	if err != nil {
		return now // the next patrol says so
	}
	for _, t := range timers {
		if t.Due.After(since.Add(-watchGrace)) {
			r.alarms.lend(t.ExecutionID, t.Due.Add(watchGrace))
		}
	}
	return now
}

// maxBeat is longer than Options.Background takes from one round to the next, unless the host sleeps.
const maxBeat = 3 * watchInterval

// wakefulness is since when a Runner has been there without a break. When a host that slept wakes up, everything is
// overdue, and who is first to look may be anybody.
type wakefulness struct {
	mu    sync.Mutex
	begun time.Time
	last  time.Time // when it was last seen awake, zero before the first round of Options.Background
}

func (w *wakefulness) begin(now time.Time) { w.begun = now }

// beat notes a round.
func (w *wakefulness) beat(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notice(now)
	w.last = now
}

// since gives since when the Runner has been there.
func (w *wakefulness) since(now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notice(now)
	return w.begun
}

func (w *wakefulness) notice(now time.Time) {
	if w.last.IsZero() {
		return // without rounds it cannot be told
	}
	if now.Sub(w.last) > maxBeat {
		w.begun = now
	}
	w.last = now
}

func (r *Runner) patrol() {
	ctx := r.ctx
	if _, err := r.takeOrphans(ctx, watchLimit, false); ctx.Err() != nil {
		return
	} else if err != nil {
		r.log.Warn("orphans not looked for", logError, err)
	}
	soon := r.now().Add(r.watchEvery())
	timers, err := r.dueRuns(ctx, soon, watchLimit)
	if err != nil {
		r.log.Warn("timers not looked for", logError, err)
		return
	}
	for _, t := range timers {
		r.alarms.lend(t.ExecutionID, t.Due.Add(watchGrace))
	}
}
