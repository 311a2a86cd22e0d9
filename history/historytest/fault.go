package historytest

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// ErrInjected is the cause of every error injected by a FaultStore.
var ErrInjected = errors.New("injected fault")

// Fault configures when a FaultStore fails.
type Fault struct {
	// At is the number of the call that fails, counted from 1 since the fault was set.
	At int
	// Reads counts all calls of the store; otherwise only Append counts.
	Reads bool
	// AfterCommit lets the call take effect before it fails, like a lost answer.
	AfterCommit bool
	// Dead makes every later call fail too, without effect, like a dead process. Revive ends it.
	Dead bool
	// Code is the code of the errors; "" means INTERNAL.
	Code problem.Code
}

// FaultStore is a store that injects faults, for testing its callers against crashes:
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
// Of the optional interfaces it has Queue, Roster and Limiter. All methods are safe for concurrent use. Close closes the wrapped store.
type FaultStore struct {
	wrapper
	store history.Store

	mu      sync.Mutex
	fault   Fault
	calls   []string
	appends int
	struck  bool
	dead    bool
}

// NewFaultStore wraps a store. It does not fail before a Fault is set.
func NewFaultStore(s history.Store) *FaultStore {
	f := &FaultStore{store: s}
	f.call = f.pass
	return f
}

// Set replaces the fault and restarts the count at 1.
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

// Calls returns the methods of the calls counted since the fault was set, in order. With a Fault whose At is 0 it lists the calls that
// could fail.
func (f *FaultStore) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Revive removes the fault: calls succeed again.
func (f *FaultStore) Revive() { f.Set(Fault{}) }

// Appends returns the number of calls of Append since the store was wrapped.
func (f *FaultStore) Appends() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.appends
}

// enter counts a call. fail is set if the call fails, before if it fails without effect.
func (f *FaultStore) enter(name string) (before, fail bool, code problem.Code) {
	f.mu.Lock()
	defer f.mu.Unlock()
	code = f.fault.Code
	isAppend := name == "Append"
	if isAppend {
		f.appends++
	}
	if f.dead {
		return true, true, code
	}
	if isAppend || f.fault.Reads {
		f.calls = append(f.calls, name)
	}
	if f.struck || f.fault.At == 0 || len(f.calls) != f.fault.At || !isAppend && !f.fault.Reads {
		return false, false, code
	}
	f.struck, f.dead = true, f.fault.Dead
	return !f.fault.AfterCommit, true, code
}

func injected(code problem.Code) error {
	return problem.New(cmp.Or(code, problem.Internal), "the store failed").WithCause(ErrInjected)
}

// pass calls the wrapped store, or fails. Close never fails on purpose.
func (f *FaultStore) pass(method string, call func(s history.Store) error) error {
	if method == "Close" {
		return call(f.store)
	}
	before, fail, code := f.enter(method)
	if before {
		return injected(code)
	}
	if err := call(f.store); !fail {
		return err
	}
	return injected(code)
}
