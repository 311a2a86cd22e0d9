package work

import (
	"context"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// ErrSilent is the cause of the end of an executor's context after too long a silence.
var ErrSilent = problem.New(problem.HeartbeatTimeout, "the attempt gave no sign of life")

// silentGrace is the time for an executor to return once its context has ended by its silence. Then its attempt fails without it.
const silentGrace = 2 * time.Second

// pulse watches for the signs of life of an attempt.
type pulse struct {
	every   time.Duration
	silence func()

	mu    sync.Mutex
	last  time.Time
	timer *time.Timer
	over  bool
}

// watch returns a context that also ends after too long a silence of the executor, and the end of the watch.
func (p *Performer) watch(ctx context.Context, executionID string, a *Attempt) (context.Context, func()) {
	every := a.Effect.Base().Heartbeat
	switch a.Effect.(type) {
	case *machine.ActivityEffect, *machine.DelegateEffect:
	default:
		every = 0
	}
	if every <= 0 {
		return ctx, func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	l := &pulse{every: every, last: time.Now()}
	l.silence = func() {
		end(ErrSilent)
		l.timer = time.AfterFunc(silentGrace, func() {
			p.Go(func() {
				if a.Context.Err() == nil && l.stop() {
					p.Runs.Silent(executionID, a, silent(a))
				}
			})
		})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(every, l.look)
	a.pulse = l
	return ctx, func() {
		l.stop()
		end(nil)
	}
}

// look ends the attempt unless a sign of life came meanwhile.
func (l *pulse) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := l.every - time.Since(l.last); left > 0 {
		l.timer.Reset(left)
	} else if !l.over {
		l.silence()
	}
}

// beat notes a sign of life.
func (l *pulse) beat() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = time.Now()
}

// stop ends the watch, and reports whether it had not ended.
func (l *pulse) stop() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	over := l.over
	l.over = true
	l.timer.Stop()
	return !over
}

// watched returns the request with the signs of life of its attempt noted.
func (a *Attempt) watched(req activities.Request) activities.Request {
	if l, tell := a.pulse, req.Heartbeat; l != nil {
		req.Heartbeat = func(details map[string]any) {
			l.beat()
			tell(details)
		}
	}
	return req
}

// silent returns the failure of an attempt that gave no sign of life.
func silent(a *Attempt) machine.Outcome {
	return keyed(a.Effect, machine.Outcome{
		Code: string(problem.HeartbeatTimeout), Error: "the attempt gave no sign of life for " + a.Effect.Base().Heartbeat.String(),
	})
}
