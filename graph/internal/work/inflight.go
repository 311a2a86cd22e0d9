package work

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// InFlight holds the attempts that a process performs now.
type InFlight struct {
	Log *slog.Logger

	mu       sync.Mutex
	attempts map[*Attempt]string // their runs
	// drained is closed when the last attempt has ended; nil before Drain.
	drained chan struct{}
}

// Begin adds an attempt of a run. After Drain it is false, but for walks while attempts are in flight, whose outcomes may wait for them.
func (s *InFlight) Begin(executionID string, a *Attempt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, walk := a.Effect.(*machine.WalkEffect); s.drained != nil && (!walk || len(s.attempts) == 0) {
		return false
	}
	if s.attempts == nil {
		s.attempts = map[*Attempt]string{}
	}
	s.attempts[a] = executionID
	s.log("attempt begun", executionID, a)
	return true
}

func (s *InFlight) log(message, executionID string, a *Attempt) {
	switch a.Effect.(type) {
	case *machine.TurnEffect, *machine.WalkEffect:
		return
	}
	if s.Log.Enabled(context.Background(), slog.LevelDebug) {
		e := a.Effect.Base()
		s.Log.Debug(message, logRun, executionID, logNode, e.NodeID, logAttempt, e.Attempt)
	}
}

// End removes an attempt after its outcome was handled.
func (s *InFlight) End(a *Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log("attempt ended", s.attempts[a], a)
	delete(s.attempts, a)
	if s.drained != nil && len(s.attempts) == 0 {
		s.close()
	}
}

// Drain stops the beginning of attempts. The channel is closed when the last attempt has ended.
func (s *InFlight) Drain() (drained <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drained == nil {
		s.drained = make(chan struct{})
	}
	if len(s.attempts) == 0 {
		s.close()
	}
	return s.drained
}

// close closes drained once. The lock is held.
func (s *InFlight) close() {
	select {
	case <-s.drained:
	default:
		close(s.drained)
	}
}

// Draining reports whether Drain was called.
func (s *InFlight) Draining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drained != nil
}

// Hanging returns the error of a Close that times out.
func (s *InFlight) Hanging(after time.Duration) error {
	if attempts := s.String(); attempts != "" {
		return problem.New(problem.RunnerClosed, "some executors have not stopped within %s: %s", after, attempts).
			WithHint("Executors must return when their context ends.")
	}
	return problem.New(problem.RunnerClosed, "no attempt is in flight, but something else has not stopped within %s", after).
		WithHint("Resolvers must return when their context ends, and OnRecord must not wait for Close.")
}

// maxNamed bounds the attempts that String names.
const maxNamed = 10

// String names the attempts in flight, "" without any.
func (s *InFlight) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for a, id := range s.attempts {
		e := a.Effect.Base()
		names = append(names, fmt.Sprintf("run %q node %q attempt %d", id, e.NodeID, e.Attempt))
	}
	slices.Sort(names)
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, "; ")
}
