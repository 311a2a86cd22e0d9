// Package guard calls functions of the embedder that the engine calls in its own goroutines, or while a run is locked: neither a
// panic nor runtime.Goexit in them, which t.FailNow calls, reaches the engine.
package guard

import (
	"fmt"
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

// Call calls f in a new goroutine, because nothing else survives runtime.Goexit, and waits for it. It returns a *Failure if f
// did not return, and logs it.
func Call(log *slog.Logger, what string, f func()) error {
	done := make(chan *Failure, 1)
	go func() {
		failure := &Failure{What: what}
		defer func() {
			if v := recover(); v != nil {
				failure.Value, failure.Stack = v, string(debug.Stack())
			}
			done <- failure
		}()
		f()
		failure = nil
	}()
	failure := <-done
	if failure == nil {
		return nil
	}
	log.Error("callback failed", "error", failure.Error(), "stack", failure.Stack)
	return failure
}
