package historytest

import (
	"errors"
	"slices"
	"sync"

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
// It is a history.Store and has none of the optional interfaces. All methods are safe for concurrent use. Closing it
// closes the store beneath.
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

// pass makes a call of the store beneath, or fails. Close never fails on purpose.
func (f *FaultStore) pass(method string, call func(s history.Store) error) error {
	if method == "Close" {
		return call(f.store)
	}
	before, fail := f.enter(method)
	if before {
		return injected()
	}
	if err := call(f.store); !fail {
		return err
	}
	return injected()
}
