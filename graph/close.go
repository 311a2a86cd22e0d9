package graph

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// Close stops executing runs. It rejects new calls and starts no more attempts. For Options.Drain, running attempts can end and their
// outcomes are recorded; the work that follows is left to other processes. For Options.DeliverLimit, it waits for webhooks. Then it ends the
// contexts of executors, records their outcomes and releases the process's lease. Attempts without an outcome are repeated, with the same
// keys, by the process that claims the run.
//
// Close returns when everything has stopped, or with an error that names the attempts still running after Options.CloseLimit. An executor or
// hook should not call Close: it would wait for itself that long.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	if r.opts.Drain > 0 {
		drained := r.inFlight.Drain()
		r.performer.Turns.Open()
		wait.Within(r.opts.Drain, drained)
	}
	r.performer.Turns.Close()
	if r.outbox.Sender != nil && r.opts.DeliverLimit > 0 {
		if left := r.outbox.Sender.Drain(r.opts.DeliverLimit); left > 0 {
			r.log.Warn("webhooks left to other processes", "deliveries", left)
		}
	}
	r.cancel(errClosed)

	done := make(chan struct{})
	go func() {
		r.tasks.Wait()
		close(done)
	}()
	var err error
	if !wait.Within(r.opts.CloseLimit, done) {
		err = r.inFlight.Hanging(r.opts.CloseLimit)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := r.lease.Release(ctx); err != nil {
		r.log.Warn("lease not released: it runs out by itself", "error", err)
	}
	return err
}
