package perform

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/execution"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Flights are the attempts that a process performs at the moment.
type Flights struct {
	Log *slog.Logger

	mu       sync.Mutex
	attempts map[*execution.Attempt]string // their runs
	// drained is closed once the last attempt has ended, nil before the draining has begun.
	drained chan struct{}
}

// Begin notes that an attempt of a run is about to be performed. It is false if nothing new is to be begun.
func (f *Flights) Begin(executionID string, a *execution.Attempt) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.drained != nil {
		return false
	}
	if f.attempts == nil {
		f.attempts = map[*execution.Attempt]string{}
	}
	f.attempts[a] = executionID
	f.log("attempt begun", executionID, a)
	return true
}

func (f *Flights) log(message, executionID string, a *execution.Attempt) {
	switch a.Effect.(type) {
	case *machine.TurnEffect, *machine.WalkEffect:
		return
	}
	if f.Log.Enabled(context.Background(), slog.LevelDebug) {
		e := a.Effect.Base()
		f.Log.Debug(message, logRun, executionID, logNode, e.NodeID, logAttempt, e.Attempt)
	}
}

// End notes that the outcome of an attempt has been seen to.
func (f *Flights) End(a *execution.Attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log("attempt ended", f.attempts[a], a)
	delete(f.attempts, a)
	if f.drained != nil && len(f.attempts) == 0 {
		f.close()
	}
}

// Drain has nothing new begun from now on. The channel is closed once the last attempt has ended.
func (f *Flights) Drain() (drained <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.drained == nil {
		f.drained = make(chan struct{})
	}
	if len(f.attempts) == 0 {
		f.close()
	}
	return f.drained
}

// close closes drained once. The lock is held.
func (f *Flights) close() {
	select {
	case <-f.drained:
	default:
		close(f.drained)
	}
}

// Draining reports whether nothing new is to be begun.
func (f *Flights) Draining() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.drained != nil
}

// Hanging is the error of a Close that gives up after a time.
func (f *Flights) Hanging(after time.Duration) error {
	if attempts := f.String(); attempts != "" {
		return problem.New(problem.RunnerClosed, "some executors have not stopped within %s: %s", after, attempts).
			WithHint("Executors must return when their context ends.")
	}
	return problem.New(problem.RunnerClosed, "no attempt is in flight, but something else has not stopped within %s", after).
		WithHint("Resolvers must return when their context ends, and OnRecord must not wait for Close.")
}

// maxNamed is how many attempts String names.
const maxNamed = 10

// String names the attempts that are being performed, "" if there are none.
func (f *Flights) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for a, id := range f.attempts {
		e := a.Effect.Base()
		names = append(names, fmt.Sprintf("run %q node %q attempt %d", id, e.NodeID, e.Attempt))
	}
	slices.Sort(names)
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, "; ")
}
