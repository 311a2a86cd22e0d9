package process

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// outageCheck is the interval of attempts to reach the store again.
const outageCheck = time.Second

// outage is a log handler that logs an outage of the store once for each cause, instead of each time that a task meets it. Lines about a run
// pass.
type outage struct {
	slog.Handler
	state *outageState
	run   bool // the handler's attributes name a run
}

type outageState struct {
	// reach asks the store for an answer, task runs a function until the process ends.
	reach func(ctx context.Context) error
	task  func(f func(ctx context.Context))

	mu    sync.Mutex
	since time.Time // zero while the store answers
	// said are the causes that were logged since then.
	said map[problem.Code]bool
}

// Handle logs a record, unless it only repeats that the store is not available.
func (o *outage) Handle(ctx context.Context, r slog.Record) error {
	var cause error
	about := o.run
	r.Attrs(func(a slog.Attr) bool {
		about = about || a.Key == run.LogRun
		if err, ok := a.Value.Any().(error); ok && a.Key == run.LogError {
			cause = err
		}
		return true
	})
	p, ok := problem.As(cause)
	if r.Level < slog.LevelWarn || about || !ok || p.Code != problem.StoreUnavailable && p.Code != problem.StoreReplaced {
		return o.Handler.Handle(ctx, r)
	}
	s := o.state
	s.mu.Lock()
	begins := s.since.IsZero()
	if begins {
		s.since, s.said = r.Time, map[problem.Code]bool{}
	}
	silent := s.said[p.Code]
	s.said[p.Code] = true
	since := s.since
	s.mu.Unlock()
	if begins {
		s.task(func(ctx context.Context) { s.watch(ctx, o.Handler) })
	}
	if silent {
		return nil
	}
	line := slog.NewRecord(r.Time, slog.LevelError, "store not available", r.PC)
	line.AddAttrs(slog.Any(run.LogError, cause))
	if !begins {
		line.AddAttrs(slog.Duration("for", r.Time.Sub(since).Round(time.Second)))
	}
	return o.Handler.Handle(ctx, line)
}

// watch waits for the end of an outage, and logs it.
func (s *outageState) watch(ctx context.Context, h slog.Handler) {
	for {
		if wait.For(ctx, outageCheck) != nil {
			return
		}
		if s.reach(ctx) != nil {
			continue
		}
		s.mu.Lock()
		since := s.since
		s.since = time.Time{}
		s.mu.Unlock()
		slog.New(h).Info("store available again", "after", time.Since(since).Round(time.Second))
		return
	}
}

// WithAttrs returns a handler with more attributes.
func (o *outage) WithAttrs(attrs []slog.Attr) slog.Handler {
	about := o.run
	for _, a := range attrs {
		about = about || a.Key == run.LogRun
	}
	return &outage{o.Handler.WithAttrs(attrs), o.state, about}
}

// WithGroup returns a handler with a group.
func (o *outage) WithGroup(name string) slog.Handler {
	return &outage{o.Handler.WithGroup(name), o.state, o.run}
}
