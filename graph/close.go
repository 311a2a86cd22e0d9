package graph

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// Close stops driving. First it drains for as long as Options.Drain says: calls are refused and no attempt is begun any more, those in
// flight may end, their outcomes are recorded, and what follows is left to other processes. Then executors' contexts end, what they
// answer is recorded, and the process's lease is released. What was in flight is performed again, with the same keys, by whoever
// takes the runs over. Before executors' contexts end, webhooks have Options.DeliverLimit to be sent. Close returns once everything has stopped, or with an error that names the attempts that have not stopped
// within Options.CloseLimit. It waits for an executor or hook that calls it, too, as long as that: they do better not to.
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
