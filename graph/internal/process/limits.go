package process

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/history"
)

const (
	// firstPoll and lastPoll are the pauses between two questions for slots while others hold them all; each is twice the one before.
	firstPoll = 50 * time.Millisecond
	lastPoll  = 250 * time.Millisecond
	// askAhead is how long before the next free start a process asks for starts after it has got some; one that has got none asks a little
	// earlier, at a random time, so that processes take turns. Several starts have become free by then.
	askAhead      = history.StartsAhead / 2
	askAheadFirst = askAhead + 5*time.Millisecond
	askRandom     = 5 * time.Millisecond
	// grantPause is the pause after a failed question.
	grantPause = time.Second
)

// SharedLimits gets this process its part of the limits that all processes of the store share. It asks the store when attempts wait, not for each
// attempt: slots are kept until a second after their last use, and start times are reserved for several attempts at once.
type SharedLimits struct {
	work.Env
	limiter history.Limiter // nil if the store has none
	lease   *Lease
	turns   *work.Queue

	some atomic.Bool // there were limits at the last look

	// Only loop uses the fields below.
	asked  map[string]*asked
	failed bool // the last question failed
}

// asked is when the store is asked about a limit again.
type asked struct {
	slots, starts time.Time
	poll          time.Duration
}

// Begin reads the limits, so that the first attempts keep to them, and starts the loop.
func (l *SharedLimits) Begin() {
	if l.limiter == nil {
		return
	}
	l.asked = map[string]*asked{}
	l.look(l.Context)
	l.Go(l.loop)
}

// look reads the limits from the store.
func (l *SharedLimits) look(ctx context.Context) {
	if l.limiter == nil {
		return
	}
	uses, err := l.limiter.SharedLimits(ctx)
	if err != nil {
		if l.Context.Err() == nil {
			l.Log.Warn("shared limits not read: the last ones stay", run.LogError, err)
		}
		return
	}
	l.some.Store(len(uses) > 0)
	l.turns.SetShared(uses, l.lease.Process(), l.lease.Lasts)
}

// lookAgain reads the limits if there are any, or were.
func (l *SharedLimits) lookAgain(limited bool) {
	if limited || l.some.Load() {
		l.look(l.Context)
	}
}

// inUse returns the limits of classes with their use. A process that keeps to limits knows whether there are any; one that only reads asks the
// store.
func (l *SharedLimits) inUse(ctx context.Context, classes []string) ([]history.LimitUse, error) {
	if l.limiter == nil || l.asked != nil && !l.turns.Shares(classes) {
		return nil, nil
	}
	uses, err := l.limiter.SharedLimits(ctx)
	return slices.DeleteFunc(uses, func(u history.LimitUse) bool { return !slices.Contains(classes, u.Class) }), err
}

func (l *SharedLimits) loop() {
	for {
		var due <-chan time.Time
		var timer *time.Timer
		if pause := l.ask(); pause > 0 {
			timer = time.NewTimer(pause)
			due = timer.C
		}
		select {
		case <-l.Context.Done():
		case <-l.turns.Asks():
		case <-due:
		}
		if timer != nil {
			timer.Stop()
		}
		if l.Context.Err() != nil {
			return
		}
	}
}

// ask asks the store for what is due. It returns the pause until something is, 0 if only a change can make it so.
func (l *SharedLimits) ask() (pause time.Duration) {
	now := time.Now()
	demands, pause := l.turns.Demands(now)
	var wants []history.Want
	for i := range demands {
		d := &demands[i]
		at := l.due(d)
		if wait := at.Sub(now); wait > 0 {
			if pause == 0 || wait < pause {
				pause = wait
			}
			continue
		}
		if now.Before(l.of(d.Class).starts) {
			d.Starts = 0
		}
		wants = append(wants, d.Want)
	}
	if len(wants) == 0 {
		return pause
	}
	granted, err := l.grant(wants)
	arrived := time.Now()
	if err != nil {
		if l.Context.Err() == nil && !l.failed {
			l.Log.Warn("shared limits: the store does not answer, so attempts wait", run.LogError, err)
		}
		l.failed = true
		for i := range wants {
			*l.of(wants[i].Class) = asked{slots: arrived.Add(grantPause), starts: arrived.Add(grantPause)}
		}
		return grantPause
	}
	l.failed = false
	for i := range wants {
		l.note(&wants[i], &granted[i], arrived)
		l.turns.Granted(wants[i].Class, &granted[i], arrived)
	}
	return pause // Granted has changed the queue, so the loop asks again
}

func (l *SharedLimits) grant(wants []history.Want) ([]history.Granted, error) {
	process, err := l.lease.Hold(l.Context)
	if err != nil {
		return nil, err
	}
	return l.limiter.Grant(l.Context, process, wants...)
}

// of returns when the store was asked about a limit.
func (l *SharedLimits) of(class string) *asked {
	a := l.asked[class]
	if a == nil {
		a = &asked{}
		l.asked[class] = a
	}
	return a
}

// due returns when the store is to be asked for a demand, zero for at once.
func (l *SharedLimits) due(d *work.Demand) time.Time {
	a := l.of(d.Class)
	var times []time.Time
	if d.Slots > d.Held {
		times = append(times, a.slots)
	}
	if d.Starts > 0 {
		times = append(times, a.starts)
	}
	if d.Free || d.Slots < d.Held || d.Unused > 0 || len(times) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(times, time.Time.Compare)
}

// note sets when the store is asked again after an answer.
func (l *SharedLimits) note(w *history.Want, g *history.Granted, arrived time.Time) {
	a := l.of(w.Class)
	switch {
	case g.Slots >= w.Slots:
		a.slots, a.poll = time.Time{}, 0
	case g.Slots > w.Used || a.poll == 0:
		a.poll = firstPoll
		a.slots = arrived.Add(a.poll)
	default:
		a.poll = min(2*a.poll, lastPoll)
		a.slots = arrived.Add(a.poll)
	}
	next := arrived.Add(g.Next.Sub(g.Now))
	switch {
	case w.Starts == 0:
	case g.Starts >= w.Starts:
		a.starts = time.Time{}
	case g.Starts > 0:
		a.starts = next.Add(-askAhead)
	default:
		a.starts = next.Add(-askAheadFirst + rand.N(askRandom))
		if soonest := arrived.Add(time.Millisecond); a.starts.Before(soonest) {
			a.starts = soonest
		}
	}
}
