// Package guard calls functions of the embedder that the engine calls in its own goroutines, or while a run is locked: neither a
// panic nor runtime.Goexit in them, which t.FailNow calls, reaches the engine.
package guard

import (
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
)

// Failure is the end of a function that did not return.
type Failure struct {
	// What names the function.
	What string
	// Value is the panic value, nil if the function ended its goroutine.
	Value any
	// Stack is the stack of the panic.
	Stack string
}

// Exited is the text for a function that ended its goroutine.
const Exited = "ended its goroutine (runtime.Goexit, which t.FailNow calls) instead of returning"

// Error describes the failure.
func (f *Failure) Error() string {
	if f.Value == nil {
		return f.What + " " + Exited
	}
	return fmt.Sprintf("%s panicked: %v", f.What, f.Value)
}

// Call calls f in a coroutine, which can end by runtime.Goexit without the caller, and which costs less than a goroutine. It returns a
// *Failure if f did not return, and logs it. A caller that is locked to its thread must not be given an f that calls runtime.Goexit.
func Call(log *slog.Logger, what string, f func()) error {
	var failure *Failure
	next, stop := iter.Pull(func(yield func(struct{}) bool) {
		returned := false
		defer func() {
			if v := recover(); v != nil {
				failure = &Failure{What: what, Value: v, Stack: string(debug.Stack())}
			} else if !returned {
				failure = &Failure{What: what}
				yield(struct{}{}) // the caller goes on before the coroutine ends, because its end would end the caller
			}
		}()
		f()
		returned = true
	})
	if _, exiting := next(); exiting {
		go stop()
	}
	if failure == nil {
		return nil
	}
	log.Error("callback failed", "error", failure.Error(), "stack", failure.Stack)
	return failure
}
