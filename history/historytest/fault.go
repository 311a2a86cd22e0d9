package historytest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// ErrInjected is the cause of every error that a FaultStore makes up.
var ErrInjected = errors.New("injected fault")

// Fault says when a FaultStore fails.
type Fault struct {
	// At is the number of the call that fails, counted from 1 since the fault was set.
	At int
	// Reads counts all calls of the store; otherwise only Append counts.
	Reads bool
	// AfterCommit lets the call take effect before it fails, as when the answer is lost.
	AfterCommit bool
	// Dead lets every later call fail too, without effect, as when the process has died. Revive ends it.
	Dead bool
}

// FaultStore is a store that fails on purpose, so that what uses it can be tested against crashes:
//
//	for n := 1; ; n++ {
//		s := historytest.NewFaultStore(historymem.New())
//		s.Set(historytest.Fault{At: n, Dead: true})
//		runUntilItFails(s)
//		if !s.Struck() {
//			break // the run needs fewer than n appends
//		}
//		s.Revive()
//		recover(s)
//	}
//
// All methods are safe for concurrent use. Closing it closes the store beneath.
type FaultStore struct {
	store history.Store

	mu      sync.Mutex
	fault   Fault
	calls   []string
	appends int
	struck  bool
	dead    bool
}

var _ history.Store = (*FaultStore)(nil)

// NewFaultStore wraps a store. It does not fail before a Fault is set.
func NewFaultStore(s history.Store) *FaultStore { return &FaultStore{store: s} }

// Set plans a fault in place of the one before and counts from 1 again.
func (f *FaultStore) Set(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.calls, f.struck, f.dead = fault, nil, false, false
}

// Struck reports whether the fault has happened.
func (f *FaultStore) Struck() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.struck
}

// Calls names the methods of the calls that have counted since the fault was set, in order. With a Fault whose At is 0
// it tells what there is to fail.
func (f *FaultStore) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Revive ends the fault: calls pass again.
func (f *FaultStore) Revive() { f.Set(Fault{}) }

// Appends counts the calls of Append since the store was wrapped.
func (f *FaultStore) Appends() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.appends
}

// enter counts a call. fail says that it fails, before that it does so without effect.
func (f *FaultStore) enter(name string) (before, fail bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	isAppend := name == "Append"
	if isAppend {
		f.appends++
	}
	if f.dead {
		return true, true
	}
	if isAppend || f.fault.Reads {
		f.calls = append(f.calls, name)
	}
	if f.struck || f.fault.At == 0 || len(f.calls) != f.fault.At || !isAppend && !f.fault.Reads {
		return false, false
	}
	f.struck, f.dead = true, f.fault.Dead
	return !f.fault.AfterCommit, true
}

func injected() error {
	return problem.New(problem.Internal, "the store failed").WithCause(ErrInjected)
}

// pass makes one call of the store beneath, or fails.
func pass[T any](f *FaultStore, name string, call func() (T, error)) (T, error) {
	var none T
	before, fail := f.enter(name)
	if before {
		return none, injected()
	}
	v, err := call()
	if fail {
		return none, injected()
	}
	return v, err
}

func passError(f *FaultStore, name string, call func() error) error {
	_, err := pass(f, name, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// Append is history.Store.Append, unless it fails.
func (f *FaultStore) Append(ctx context.Context, b history.Batch) error {
	return passError(f, "Append", func() error { return f.store.Append(ctx, b) })
}

// Read is history.Store.Read, unless it fails.
func (f *FaultStore) Read(ctx context.Context, executionID string, fromSeq int64, limit int) ([]history.Record, error) {
	return pass(f, "Read", func() ([]history.Record, error) { return f.store.Read(ctx, executionID, fromSeq, limit) })
}

// Execution is history.Store.Execution, unless it fails.
func (f *FaultStore) Execution(ctx context.Context, executionID string) (history.Execution, error) {
	return pass(f, "Execution", func() (history.Execution, error) { return f.store.Execution(ctx, executionID) })
}

// Position is history.Store.Position, unless it fails.
func (f *FaultStore) Position(ctx context.Context, executionID string) (int64, []byte, error) {
	type position struct {
		seq  int64
		data []byte
	}
	p, err := pass(f, "Position", func() (p position, err error) {
		p.seq, p.data, err = f.store.Position(ctx, executionID)
		return p, err
	})
	return p.seq, p.data, err
}

// List is history.Store.List, unless it fails.
func (f *FaultStore) List(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
	return pass(f, "List", func() (history.ListPage, error) { return f.store.List(ctx, q) })
}

// Definition is history.Store.Definition, unless it fails.
func (f *FaultStore) Definition(ctx context.Context, hash string) (history.StoredDefinition, error) {
	return pass(f, "Definition", func() (history.StoredDefinition, error) { return f.store.Definition(ctx, hash) })
}

// DefinitionByName is history.Store.DefinitionByName, unless it fails.
func (f *FaultStore) DefinitionByName(ctx context.Context, name, version string) (history.StoredDefinition, error) {
	return pass(f, "DefinitionByName", func() (history.StoredDefinition, error) { return f.store.DefinitionByName(ctx, name, version) })
}

// PutDefinition is history.Store.PutDefinition, unless it fails.
func (f *FaultStore) PutDefinition(ctx context.Context, d history.StoredDefinition) error {
	return passError(f, "PutDefinition", func() error { return f.store.PutDefinition(ctx, d) })
}

// DueTimers is history.Store.DueTimers, unless it fails.
func (f *FaultStore) DueTimers(ctx context.Context, now time.Time, limit int) ([]history.Timer, error) {
	return pass(f, "DueTimers", func() ([]history.Timer, error) { return f.store.DueTimers(ctx, now, limit) })
}

// NextTimer is history.Store.NextTimer, unless it fails.
func (f *FaultStore) NextTimer(ctx context.Context) (time.Time, bool, error) {
	type next struct {
		due time.Time
		ok  bool
	}
	n, err := pass(f, "NextTimer", func() (n next, err error) {
		n.due, n.ok, err = f.store.NextTimer(ctx)
		return n, err
	})
	return n.due, n.ok, err
}

// Now is history.Store.Now, unless it fails.
func (f *FaultStore) Now(ctx context.Context) (time.Time, error) {
	return pass(f, "Now", func() (time.Time, error) { return f.store.Now(ctx) })
}

// Renew is history.Store.Renew, unless it fails.
func (f *FaultStore) Renew(ctx context.Context, process string, ttl time.Duration) error {
	return passError(f, "Renew", func() error { return f.store.Renew(ctx, process, ttl) })
}

// Release is history.Store.Release, unless it fails.
func (f *FaultStore) Release(ctx context.Context, process string) error {
	return passError(f, "Release", func() error { return f.store.Release(ctx, process) })
}

// Claim is history.Store.Claim, unless it fails.
func (f *FaultStore) Claim(ctx context.Context, process string, executionIDs ...string) ([]string, error) {
	return pass(f, "Claim", func() ([]string, error) { return f.store.Claim(ctx, process, executionIDs...) })
}

// Disown is history.Store.Disown, unless it fails.
func (f *FaultStore) Disown(ctx context.Context, process string, executionIDs ...string) error {
	return passError(f, "Disown", func() error { return f.store.Disown(ctx, process, executionIDs...) })
}

// Owner is history.Store.Owner, unless it fails.
func (f *FaultStore) Owner(ctx context.Context, executionID string) (history.Owner, error) {
	return pass(f, "Owner", func() (history.Owner, error) { return f.store.Owner(ctx, executionID) })
}

// Owned is history.Store.Owned, unless it fails.
func (f *FaultStore) Owned(ctx context.Context, process string) (map[string]int64, error) {
	return pass(f, "Owned", func() (map[string]int64, error) { return f.store.Owned(ctx, process) })
}

// Departed is history.Store.Departed, unless it fails.
func (f *FaultStore) Departed(ctx context.Context) ([]string, error) {
	return pass(f, "Departed", func() ([]string, error) { return f.store.Departed(ctx) })
}

// Unowned is history.Store.Unowned, unless it fails.
func (f *FaultStore) Unowned(ctx context.Context, limit int) ([]string, error) {
	return pass(f, "Unowned", func() ([]string, error) { return f.store.Unowned(ctx, limit) })
}

// Close closes the store beneath; it never fails on purpose.
func (f *FaultStore) Close() error { return f.store.Close() }
