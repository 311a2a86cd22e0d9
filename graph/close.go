package graph

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Close stops driving. First it drains for as long as Options.Drain says: calls are refused and no attempt is begun any more, those in
// flight may end, their outcomes are recorded, and what follows is left to other processes. Then executors' contexts end, what they
// answer is recorded, and the process's lease is released. What was in flight is performed again, with the same keys, by whoever
// takes the runs over. Close returns once everything has stopped, or with an error that names the attempts that have not stopped
// within Options.CloseLimit. It waits for an executor or hook that calls it, too, as long as that: they do better not to.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	if r.opts.Drain > 0 {
		within(r.opts.Drain, r.flights.Drain())
	}
	r.cancel(errClosed)

	done := make(chan struct{})
	go func() {
		r.tasks.Wait()
		close(done)
	}()
	var err error
	if !within(r.opts.CloseLimit, done) {
		err = r.hanging()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := r.lease.Release(ctx); err != nil {
		r.log.Warn("lease not released: it runs out by itself", logError, err)
	}
	return err
}

// within waits for a channel to be closed, and reports whether that happened in time.
func within(limit time.Duration, done <-chan struct{}) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// hanging is the error of a Close that gives up.
func (r *Runner) hanging() error {
	if attempts := r.flights.String(); attempts != "" {
		return problem.New(problem.RunnerClosed, "some executors have not stopped within %s: %s", r.opts.CloseLimit, attempts).
			WithHint("Executors must return when their context ends.")
	}
	return problem.New(problem.RunnerClosed, "no attempt is in flight, but something else has not stopped within %s", r.opts.CloseLimit).
		WithHint("Resolvers must return when their context ends, and OnRecord must not wait for Close.")
}
