package outbox

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/guard"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// The rhythm of a Sender.
const (
	// lookInterval is how often the store is asked what is due. What this process has written is sent at once.
	lookInterval = time.Second
	// atOnce is how many attempts to one target are under way at the same time, and batch how many are looked for together.
	atOnce = 4
	batch  = 64
	// grace is how much longer than an attempt may take it keeps other processes away, so that its outcome can be recorded.
	grace = 10 * time.Second
)

// settlePauses are left before an outcome is recorded again after the store failed.
var settlePauses = []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second, 5 * time.Second}

// Send sends a delivery. An error counts as one that may pass; its text is stored.
type Send func(ctx context.Context, d history.Delivery) (history.Receipt, error)

// Sender sends what is due to the targets of a process. Begin starts it.
type Sender struct {
	Store   history.Store
	Targets Targets
	Send    Send
	// Process names this process among those that send.
	Process string
	// Now is the engine's clock.
	Now func() time.Time
	Log *slog.Logger
	// Go runs a function in a goroutine of its own, Context ends all of them.
	Go      func(func())
	Context context.Context

	wakes map[string]chan struct{}

	mu sync.Mutex
	// fresh are the targets of the deliveries that this process has written and not yet looked for, by id.
	fresh map[string]string
	idle  chan struct{} // closed when fresh is empty, nil unless somebody waits
}

// Begin starts sending, with a goroutine for each target, so that none waits for another one.
func (s *Sender) Begin() {
	s.wakes, s.fresh = map[string]chan struct{}{}, map[string]string{}
	for name := range s.Targets {
		s.wakes[name] = make(chan struct{}, 1)
		s.Go(func() { s.serve(name) })
	}
}

// Stored notes deliveries that this process has written. It reports whether this process has the target of one.
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

// Drain waits until what this process has written has been tried once, but no longer than a limit. It returns how many deliveries have not
// been: they are left to other processes.
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

// freshOf returns what this process has written for a target and not yet looked for.
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

// serve sends to one target until the context ends.
func (s *Sender) serve(target string) {
	failed := false
	for {
		more, err := s.round(target)
		if err != nil && !failed && s.Context.Err() == nil {
			s.Log.Warn("webhooks not looked for", "target", target, "error", err)
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

// round sends what is due, and reports whether there may be more of it.
func (s *Sender) round(target string) (more bool, err error) {
	fresh := s.freshOf(target)
	due, err := s.Store.DueDeliveries(s.Context, target, s.Now(), batch)
	if err != nil {
		return false, err
	}
	places := make(chan struct{}, atOnce)
	var sending sync.WaitGroup
	for _, d := range due {
		places <- struct{}{}
		sending.Go(func() {
			defer func() { <-places }()
			if err := s.attempt(&d); err != nil && s.Context.Err() == nil {
				s.Log.Warn("webhook attempt not recorded", attrs(&d, "error", err)...)
			}
		})
	}
	sending.Wait()
	if more = len(due) == batch; !more {
		s.tried(fresh...) // those that were not found are another process's
	}
	return more, nil
}

func attrs(d *history.Delivery, more ...any) []any {
	return append([]any{"target", d.Target, "event", string(d.Event), "execution_id", d.ExecutionID, "delivery", d.ID, "attempt", d.Attempts}, more...)
}

// attempt makes one attempt: its intent is stored first, its outcome afterwards.
func (s *Sender) attempt(found *history.Delivery) error {
	if s.Context.Err() != nil {
		return nil
	}
	target := s.Targets[found.Target]
	limit := cmp.Or(target.Timeout, DefaultTimeout)
	d, claimed, err := s.Store.ClaimDelivery(s.Context, history.DeliveryClaim{
		DeliveryID: found.ID, Attempt: found.Attempts + 1, Process: s.Process, TTL: limit + grace, At: s.Now(),
	})
	if err != nil {
		return err
	}
	if !claimed { // another process was faster
		return nil
	}
	end := history.Settlement{DeliveryID: d.ID, Attempt: d.Attempts}
	if target.wants(d.Event) {
		end.Receipt = s.send(d, limit)
		end.State, end.Due, end.Step = next(&d, end.Receipt, s.Now())
	} else {
		end.Receipt = history.Receipt{Outcome: history.SendRefused, Error: fmt.Sprintf("the target wants no %s", d.Event)}
		end.State, end.Due, end.Step = history.DeliveryUnwanted, s.Now(), d.Step
	}
	end.At = s.Now()
	s.log(&d, &end)
	return s.settle(end)
}

// send calls Send, whatever it does.
func (s *Sender) send(d history.Delivery, limit time.Duration) (r history.Receipt) {
	ctx, stop := context.WithTimeoutCause(s.Context, limit, fmt.Errorf("there was no answer within %v", limit))
	defer stop()
	var err error
	if failure := guard.Call(s.Log, "the sender of webhooks", func() { r, err = s.Send(ctx, d) }); failure != nil {
		r, err = history.Receipt{}, failure
	}
	switch {
	case err == nil && r.Outcome != "":
	case s.Context.Err() != nil:
		return history.Receipt{Outcome: history.SendStopped, Error: "the process was stopped"}
	case err == nil:
		r.Outcome, r.Error = history.SendAgain, "the sender of webhooks returned no outcome"
	default:
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		r.Outcome, r.Error = history.SendAgain, err.Error()
	}
	r.Error = beginning(r.Error)
	return r
}

// settle records an outcome. It outlives the sender: what has happened is recorded.
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
