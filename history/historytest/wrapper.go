package historytest

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// wrapper implements history.Store, history.Queue, history.Roster and history.Limiter. Each method passes its name and its call of the store to the function call.
type wrapper struct {
	call func(method string, do func(s history.Store) error) error
}

var (
	_ history.Queue   = (*wrapper)(nil)
	_ history.Roster  = (*wrapper)(nil)
	_ history.Limiter = (*wrapper)(nil)
)

// ask makes a call that returns a value.
func ask[T any](w *wrapper, method string, do func(s history.Store) (T, error)) (v T, err error) {
	err = w.call(method, func(s history.Store) (err error) {
		v, err = do(s)
		return err
	})
	if err != nil {
		v = *new(T)
	}
	return v, err
}

func (w *wrapper) Append(ctx context.Context, b history.Batch) error {
	return w.call("Append", func(s history.Store) error { return s.Append(ctx, b) })
}

func (w *wrapper) Read(ctx context.Context, executionID string, fromSeq int64, limit int) ([]history.Record, error) {
	return ask(w, "Read", func(s history.Store) ([]history.Record, error) { return s.Read(ctx, executionID, fromSeq, limit) })
}

func (w *wrapper) Execution(ctx context.Context, executionID string) (history.Execution, error) {
	return ask(w, "Execution", func(s history.Store) (history.Execution, error) { return s.Execution(ctx, executionID) })
}

func (w *wrapper) Position(ctx context.Context, executionID string) (seq int64, data []byte, err error) {
	data, err = ask(w, "Position", func(s history.Store) (data []byte, err error) {
		seq, data, err = s.Position(ctx, executionID)
		return data, err
	})
	return seq, data, err
}

func (w *wrapper) List(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
	return ask(w, "List", func(s history.Store) (history.ListPage, error) { return s.List(ctx, q) })
}

func (w *wrapper) Count(ctx context.Context, q history.ListQuery, most int) (int, error) {
	return ask(w, "Count", func(s history.Store) (int, error) { return s.Count(ctx, q, most) })
}

func (w *wrapper) Definitions(ctx context.Context, cursor string, limit int) (history.DefinitionPage, error) {
	return ask(w, "Definitions", func(s history.Store) (history.DefinitionPage, error) { return s.Definitions(ctx, cursor, limit) })
}

func (w *wrapper) Tree(ctx context.Context, executionID string) (history.TreeUse, error) {
	return ask(w, "Tree", func(s history.Store) (history.TreeUse, error) { return s.Tree(ctx, executionID) })
}

func (w *wrapper) Definition(ctx context.Context, hash string) (history.StoredDefinition, error) {
	return ask(w, "Definition", func(s history.Store) (history.StoredDefinition, error) { return s.Definition(ctx, hash) })
}

func (w *wrapper) DefinitionByName(ctx context.Context, name, version string) (history.StoredDefinition, error) {
	return ask(w, "DefinitionByName", func(s history.Store) (history.StoredDefinition, error) { return s.DefinitionByName(ctx, name, version) })
}

func (w *wrapper) PutDefinition(ctx context.Context, d history.StoredDefinition) error {
	return w.call("PutDefinition", func(s history.Store) error { return s.PutDefinition(ctx, d) })
}

func (w *wrapper) DueTimers(ctx context.Context, now time.Time, limit int) ([]history.Timer, error) {
	return ask(w, "DueTimers", func(s history.Store) ([]history.Timer, error) { return s.DueTimers(ctx, now, limit) })
}

func (w *wrapper) Now(ctx context.Context) (time.Time, error) {
	return ask(w, "Now", func(s history.Store) (time.Time, error) { return s.Now(ctx) })
}

func (w *wrapper) Renew(ctx context.Context, process string, ttl time.Duration) error {
	return w.call("Renew", func(s history.Store) error { return s.Renew(ctx, process, ttl) })
}

func (w *wrapper) Release(ctx context.Context, process string) error {
	return w.call("Release", func(s history.Store) error { return s.Release(ctx, process) })
}

func (w *wrapper) Claim(ctx context.Context, process string, executionIDs ...string) ([]string, error) {
	return ask(w, "Claim", func(s history.Store) ([]string, error) { return s.Claim(ctx, process, executionIDs...) })
}

func (w *wrapper) Disown(ctx context.Context, process string, executionIDs ...string) error {
	return w.call("Disown", func(s history.Store) error { return s.Disown(ctx, process, executionIDs...) })
}

func (w *wrapper) Owner(ctx context.Context, executionID string) (history.Owner, error) {
	return ask(w, "Owner", func(s history.Store) (history.Owner, error) { return s.Owner(ctx, executionID) })
}

func (w *wrapper) Owned(ctx context.Context, process string) (map[string]int64, error) {
	return ask(w, "Owned", func(s history.Store) (map[string]int64, error) { return s.Owned(ctx, process) })
}

func (w *wrapper) Overview(ctx context.Context, process string) (history.Overview, error) {
	return ask(w, "Overview", func(s history.Store) (history.Overview, error) { return s.Overview(ctx, process) })
}

func (w *wrapper) Unowned(ctx context.Context, limit int) ([]string, error) {
	return ask(w, "Unowned", func(s history.Store) ([]string, error) { return s.Unowned(ctx, limit) })
}

func (w *wrapper) DueDeliveries(ctx context.Context, target string, now time.Time, limit int) ([]history.Delivery, error) {
	return ask(w, "DueDeliveries", func(s history.Store) ([]history.Delivery, error) { return s.DueDeliveries(ctx, target, now, limit) })
}

func (w *wrapper) ClaimDelivery(ctx context.Context, c history.DeliveryClaim) (d history.Delivery, claimed bool, err error) {
	d, err = ask(w, "ClaimDelivery", func(s history.Store) (d history.Delivery, err error) {
		d, claimed, err = s.ClaimDelivery(ctx, c)
		return d, err
	})
	return d, claimed && err == nil, err
}

func (w *wrapper) SettleDelivery(ctx context.Context, r history.Settlement) error {
	return w.call("SettleDelivery", func(s history.Store) error { return s.SettleDelivery(ctx, r) })
}

func (w *wrapper) ListDeliveries(ctx context.Context, q history.DeliveryQuery) (history.DeliveryPage, error) {
	return ask(w, "ListDeliveries", func(s history.Store) (history.DeliveryPage, error) { return s.ListDeliveries(ctx, q) })
}

func (w *wrapper) RequeueDelivery(ctx context.Context, deliveryID string, due time.Time) error {
	return w.call("RequeueDelivery", func(s history.Store) error { return s.RequeueDelivery(ctx, deliveryID, due) })
}

func (w *wrapper) Links(ctx context.Context, executionID string) ([]history.Link, error) {
	return ask(w, "Links", func(s history.Store) ([]history.Link, error) { return s.Links(ctx, executionID) })
}

func (w *wrapper) Handle(ctx context.Context, h history.Handling) error {
	return w.call("Handle", func(s history.Store) error { return s.Handle(ctx, h) })
}

func (w *wrapper) Unhandle(ctx context.Context, executionID string) error {
	return w.call("Unhandle", func(s history.Store) error { return s.Unhandle(ctx, executionID) })
}

func (w *wrapper) Handled(ctx context.Context, executionIDs ...string) (map[string]history.Handling, error) {
	return ask(w, "Handled", func(s history.Store) (map[string]history.Handling, error) { return s.Handled(ctx, executionIDs...) })
}

func (w *wrapper) Close() error {
	return w.call("Close", func(s history.Store) error { return s.Close() })
}

// optionally makes a call of the optional interface T. It returns INTERNAL_ERROR if the store has no such interface.
func optionally[T, V any](w *wrapper, method string, do func(s T) (V, error)) (V, error) {
	return ask(w, method, func(s history.Store) (V, error) {
		v, ok := history.As[T](s)
		if !ok {
			return *new(V), problem.New(problem.Internal, "%T has no method %s", s, method)
		}
		return do(v)
	})
}

// Processes returns the processes with a live lease; see history.Roster.
func (w *wrapper) Processes(ctx context.Context) ([]history.Process, error) {
	return optionally(w, "Processes", func(s history.Roster) ([]history.Process, error) { return s.Processes(ctx) })
}

// Describe replaces the description of a process; see history.Roster.
func (w *wrapper) Describe(ctx context.Context, process string, a history.About) error {
	_, err := optionally(w, "Describe", func(s history.Roster) (_ any, err error) { return nil, s.Describe(ctx, process, a) })
	return err
}

// ClaimReady makes a process the owner of ready runs; see history.Queue.
func (w *wrapper) ClaimReady(ctx context.Context, c history.ReadyClaim) ([]string, error) {
	return optionally(w, "ClaimReady", func(s history.Queue) ([]string, error) { return s.ClaimReady(ctx, c) })
}

// Offer makes runs ready that a process owns; see history.Queue.
func (w *wrapper) Offer(ctx context.Context, process string, runs ...history.Offer) error {
	_, err := optionally(w, "Offer", func(s history.Queue) (_ any, err error) { return nil, s.Offer(ctx, process, runs...) })
	return err
}

// Lanes returns the lanes with ready runs; see history.Queue.
func (w *wrapper) Lanes(ctx context.Context) ([]history.LaneUse, error) {
	return optionally(w, "Lanes", func(s history.Queue) ([]history.LaneUse, error) { return s.Lanes(ctx) })
}

// Place returns the place of a ready run; see history.Queue.
func (w *wrapper) Place(ctx context.Context, executionID string) (p history.Place, ok bool, err error) {
	p, err = optionally(w, "Place", func(s history.Queue) (p history.Place, err error) {
		p, ok, err = s.Place(ctx, executionID)
		return p, err
	})
	return p, ok && err == nil, err
}

// ReadyIn returns the ready runs in a lane; see history.Queue.
func (w *wrapper) ReadyIn(ctx context.Context, l history.Lane, limit int) ([]string, error) {
	return optionally(w, "ReadyIn", func(s history.Queue) ([]string, error) { return s.ReadyIn(ctx, l, limit) })
}

// WatchReady calls wake whenever runs may have become ready; see history.Queue.
func (w *wrapper) WatchReady(ctx context.Context, wake func()) error {
	_, err := optionally(w, "WatchReady", func(s history.Queue) (_ any, err error) { return nil, s.WatchReady(ctx, wake) })
	return err
}

// SetLimits sets the limits of some classes; see history.Limiter.
func (w *wrapper) SetLimits(ctx context.Context, limits ...history.SharedLimit) error {
	_, err := optionally(w, "SetLimits", func(s history.Limiter) (_ any, err error) { return nil, s.SetLimits(ctx, limits...) })
	return err
}

// SharedLimits returns the limits; see history.Limiter.
func (w *wrapper) SharedLimits(ctx context.Context) ([]history.LimitUse, error) {
	return optionally(w, "SharedLimits", func(s history.Limiter) ([]history.LimitUse, error) { return s.SharedLimits(ctx) })
}

// Grant gives a process slots and start times; see history.Limiter.
func (w *wrapper) Grant(ctx context.Context, process string, wants ...history.Want) ([]history.Granted, error) {
	return optionally(w, "Grant", func(s history.Limiter) ([]history.Granted, error) { return s.Grant(ctx, process, wants...) })
}
