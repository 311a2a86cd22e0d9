package outbox

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/guard"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// Intervals and sizes of a Sender.
const (
	// lookInterval is how often the store is polled for due deliveries. Those of this process are sent at once.
	lookInterval = time.Second
	// atOnce is the number of concurrent attempts to one target, batch the number of deliveries read at once.
	atOnce = 4
	batch  = 64
	// grace is the time by which a claim outlives the longest attempt, so that its outcome can be recorded.
	grace = 10 * time.Second
)

// settlePauses are the pauses between attempts to record an outcome while the store fails.
var settlePauses = []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second, 5 * time.Second}

// Send sends a delivery. An error is taken as temporary; its text is stored.
type Send func(ctx context.Context, d history.Delivery) (history.Receipt, error)

// Sender sends due deliveries to the targets of a process. Begin starts it.
type Sender struct {
	Store   history.Store
	Targets Targets
	Send    Send
	// Process is the name of this process in claims.
	Process string
	// Now is the engine's clock.
	Now func() time.Time
	Log *slog.Logger
	// Go starts a goroutine; the end of Context ends all of them.
	Go      func(func())
	Context context.Context

	wakes map[string]chan struct{}

	mu sync.Mutex
	// fresh holds the deliveries that this process has written and not yet attempted: the target by id, "" during the attempt.
	fresh map[string]string
	idle  chan struct{} // closed when fresh is empty; nil unless Drain waits
}

// Begin starts a goroutine for each target, so that a slow target does not delay the others.
func (s *Sender) Begin() {
	s.wakes, s.fresh = map[string]chan struct{}{}, map[string]string{}
	for name := range s.Targets {
		s.wakes[name] = make(chan struct{}, 1)
	}
	for name := range s.Targets { // in a second loop: the goroutines read the map
		s.Go(func() { s.serve(name) })
	}
}

// Stored wakes the goroutines of the targets of new deliveries. It reports whether this process has one of these targets.
func (s *Sender) Stored(ds []history.Delivery) (here bool) {
	for i := range ds {
		wake, ok := s.wakes[ds[i].Target]
		if !ok {
			continue // another process has the target
		}
		here = true
		s.mu.Lock()
		s.fresh[ds[i].ID] = ds[i].Target
		s.mu.Unlock()
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	return here
}

// Drain waits for the first attempt of each delivery that this process has written, up to a limit. It returns the number of deliveries
// without an attempt, which other processes send.
func (s *Sender) Drain(limit time.Duration) (left int) {
	s.mu.Lock()
	idle := make(chan struct{})
	if s.idle = idle; len(s.fresh) == 0 {
		close(idle)
		s.idle = nil
	}
	s.mu.Unlock()
	wait.Within(limit, idle)
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.fresh)
}

// freshOf returns the deliveries to a target that this process has written and is not yet sending.
func (s *Sender) freshOf(target string) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, of := range s.fresh {
		if of == target {
			ids = append(ids, id)
		}
	}
	return ids
}

// sending marks a delivery as being sent.
func (s *Sender) sending(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.fresh[id]; ok {
		s.fresh[id] = ""
	}
}

// tried removes deliveries from fresh.
func (s *Sender) tried(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		delete(s.fresh, id)
	}
	if len(s.fresh) == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// serve sends to one target until the context ends. An attempt that hangs occupies one of the places.
func (s *Sender) serve(target string) {
	places := make(chan struct{}, atOnce)
	failed := false
	for {
		more, err := s.look(target, places)
		if err != nil && !failed && s.Context.Err() == nil {
			s.Log.Warn("due webhooks not read", "target", target, "error", err)
		}
		failed = err != nil
		if more && s.Context.Err() == nil {
			continue
		}
		select {
		case <-s.Context.Done():
			return
		case <-s.wakes[target]:
		case <-time.After(lookInterval):
		}
	}
}

// look starts an attempt of each due delivery, as soon as a place is free, and reports whether more deliveries may be due.
func (s *Sender) look(target string, places chan struct{}) (more bool, err error) {
	fresh := s.freshOf(target)
	due, err := s.Store.DueDeliveries(s.Context, target, s.Now(), batch)
	if err != nil {
		return false, err
	}
	if more = len(due) == batch; !more {
		s.tried(missing(fresh, due)...) // another process has claimed them
	}
	for i := range due {
		select {
		case places <- struct{}{}:
		case <-s.Context.Done():
			return false, nil
		}
		d, claimed, err := s.claim(&due[i])
		if err != nil {
			<-places
			return false, err
		}
		if !claimed { // another process was faster
			<-places
			s.tried(due[i].ID)
			continue
		}
		s.sending(d.ID)
		s.Go(func() {
			defer func() { <-places }()
			if err := s.attempt(&d); err != nil && s.Context.Err() == nil {
				s.Log.Warn("webhook attempt not recorded", attrs(&d, "error", err)...)
			}
			s.tried(d.ID)
		})
	}
	return more, nil
}

// missing returns the ids without a delivery.
func missing(ids []string, ds []history.Delivery) []string {
	return slices.DeleteFunc(ids, func(id string) bool {
		return slices.ContainsFunc(ds, func(d history.Delivery) bool { return d.ID == id })
	})
}

func attrs(d *history.Delivery, more ...any) []any {
	return append([]any{"target", d.Target, "event", string(d.Event), "execution_id", d.ExecutionID, "delivery", d.ID, "attempt", d.Attempts}, more...)
}

// claim starts an attempt, unless another process has.
func (s *Sender) claim(found *history.Delivery) (d history.Delivery, claimed bool, err error) {
	return s.Store.ClaimDelivery(s.Context, history.DeliveryClaim{
		DeliveryID: found.ID, Attempt: found.Attempts + 1, Process: s.Process, TTL: s.limit(found.Target) + grace, At: s.Now(),
	})
}

func (s *Sender) limit(target string) time.Duration {
	return cmp.Or(s.Targets[target].Timeout, DefaultTimeout)
}

// attempt performs a claimed attempt and stores its outcome.
func (s *Sender) attempt(d *history.Delivery) error {
	end := s.Try(d)
	s.log(d, &end)
	return s.settle(end)
}

// Try performs an attempt and returns its outcome.
func (s *Sender) Try(d *history.Delivery) history.Settlement {
	target := s.Targets[d.Target]
	end := history.Settlement{DeliveryID: d.ID, Attempt: d.Attempts}
	if target.wants(d.Event) {
		end.Receipt = s.send(*d, s.limit(d.Target))
		end.State, end.Due, end.Step = next(d, end.Receipt, s.Now())
	} else {
		end.Receipt = history.Receipt{Outcome: history.SendRefused, Error: fmt.Sprintf("target does not want %s events", d.Event)}
		end.State, end.Due, end.Step = history.DeliveryUnwanted, s.Now(), d.Step
	}
	end.At = s.Now()
	return end
}

// send calls Send and turns errors, panics and the timeout into a receipt.
func (s *Sender) send(d history.Delivery, limit time.Duration) (r history.Receipt) {
	ctx, stop := context.WithTimeoutCause(s.Context, limit, fmt.Errorf("no answer within %v", limit))
	defer stop()
	var err error
	if failure := guard.Call(s.Log, "the sender of webhooks", func() { r, err = s.Send(ctx, d) }); failure != nil {
		r, err = history.Receipt{}, failure
	}
	switch {
	case err == nil && r.Outcome != "":
	case s.Context.Err() != nil:
		return history.Receipt{Outcome: history.SendStopped, Error: "process stopped"}
	case err == nil:
		r.Outcome, r.Error = history.SendAgain, "sender returned no outcome"
	default:
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		r.Outcome, r.Error = history.SendAgain, err.Error()
	}
	r.Error = beginning(r.Error)
	return r
}

// settle records an outcome, also after the context has ended.
func (s *Sender) settle(end history.Settlement) error {
	ctx := context.WithoutCancel(s.Context)
	for try := 0; ; try++ {
		err := s.Store.SettleDelivery(ctx, end)
		if err == nil || try == len(settlePauses) || wait.For(s.Context, settlePauses[try]) != nil {
			return err
		}
	}
}

func (s *Sender) log(d *history.Delivery, end *history.Settlement) {
	switch {
	case end.State == history.DeliveryDead:
		s.Log.Error("webhook given up", attrs(d, "status", end.Status, "error", end.Error)...)
	case end.Outcome == history.SendAgain:
		s.Log.Warn("webhook not delivered", attrs(d, "status", end.Status, "error", end.Error, "due", end.Due)...)
	default:
		s.Log.Debug("webhook attempt", attrs(d, "outcome", string(end.Outcome), "status", end.Status)...)
	}
}
