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

// The rhythm of a Sender.
const (
	// lookInterval is how often the store is asked what is due. What this process has written is sent at once.
	lookInterval = time.Second
	// atOnce is how many attempts to one target are under way at the same time, and batch how many deliveries are looked for together.
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
	// fresh are the targets of the deliveries that this process has written and not yet tried, by id; "" while one is being sent.
	fresh map[string]string
	idle  chan struct{} // closed when fresh is empty, nil unless somebody waits
}

// Begin starts sending, with a goroutine for each target, so that none waits for another one.
func (s *Sender) Begin() {
	s.wakes, s.fresh = map[string]chan struct{}{}, map[string]string{}
	for name := range s.Targets {
		s.wakes[name] = make(chan struct{}, 1)
	}
	for name := range s.Targets { // not before the map is whole: they read it
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

// freshOf returns what this process has written for a target and is not yet sending.
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

// sending notes that a delivery is being sent.
func (s *Sender) sending(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.fresh[id]; ok {
		s.fresh[id] = ""
	}
}

// tried notes that deliveries need no first attempt of this process any more.
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

// serve sends to one target until the context ends. An attempt that hangs keeps one of the places, and the others go on.
func (s *Sender) serve(target string) {
	places := make(chan struct{}, atOnce)
	failed := false
	for {
		more, err := s.look(target, places)
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

// look begins an attempt of all that is due, each as soon as it has a place, and reports whether there may be more of it.
func (s *Sender) look(target string, places chan struct{}) (more bool, err error) {
	fresh := s.freshOf(target)
	due, err := s.Store.DueDeliveries(s.Context, target, s.Now(), batch)
	if err != nil {
		return false, err
	}
	if more = len(due) == batch; !more {
		s.tried(missing(fresh, due)...) // those are another process's
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

// missing returns those ids that are of none of some deliveries.
func missing(ids []string, ds []history.Delivery) []string {
	return slices.DeleteFunc(ids, func(id string) bool {
		return slices.ContainsFunc(ds, func(d history.Delivery) bool { return d.ID == id })
	})
}

func attrs(d *history.Delivery, more ...any) []any {
	return append([]any{"target", d.Target, "event", string(d.Event), "execution_id", d.ExecutionID, "delivery", d.ID, "attempt", d.Attempts}, more...)
}

// claim begins an attempt, unless another process has.
func (s *Sender) claim(found *history.Delivery) (d history.Delivery, claimed bool, err error) {
	return s.Store.ClaimDelivery(s.Context, history.DeliveryClaim{
		DeliveryID: found.ID, Attempt: found.Attempts + 1, Process: s.Process, TTL: s.limit(found.Target) + grace, At: s.Now(),
	})
}

func (s *Sender) limit(target string) time.Duration {
	return cmp.Or(s.Targets[target].Timeout, DefaultTimeout)
}

// attempt makes the attempt that a claim has stored, and stores its outcome.
func (s *Sender) attempt(d *history.Delivery) error {
	target := s.Targets[d.Target]
	end := history.Settlement{DeliveryID: d.ID, Attempt: d.Attempts}
	if target.wants(d.Event) {
		end.Receipt = s.send(*d, s.limit(d.Target))
		end.State, end.Due, end.Step = next(d, end.Receipt, s.Now())
	} else {
		end.Receipt = history.Receipt{Outcome: history.SendRefused, Error: fmt.Sprintf("the target wants no %s", d.Event)}
		end.State, end.Due, end.Step = history.DeliveryUnwanted, s.Now(), d.Step
	}
	end.At = s.Now()
	s.log(d, &end)
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
