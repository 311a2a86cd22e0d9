package graph

import "time"

// The rhythm of Options.Background.
const (
	// watchDelay leaves the embedder time to register its workflows before the first look.
	watchDelay = 250 * time.Millisecond
	// watchInterval is how often the store is searched for orphans and foreign timers.
	watchInterval = 10 * time.Second
	// watchGrace is how long a foreign timer may be overdue before it is fired here.
	watchGrace = time.Second
	watchLimit = 500
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
		r.patrol()
		if !r.pause(every) {
			return
		}
	}
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
