package work

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// The causes of the end of an attempt's context, besides the end of the engine; see context.Cause.
var (
	// ErrUnwanted: the run has ended, or continues without this outcome.
	ErrUnwanted = problem.New(problem.ActivityCancelled, "the outcome is not wanted any more")
	// ErrLeaseLost: another process owns the run now, or may.
	ErrLeaseLost = problem.New(problem.ActivityCancelled, "another process owns the run")
	// ErrDeadline: the attempt's deadline has passed.
	ErrDeadline = problem.New(problem.Timeout, "the attempt did not end by its deadline")
)

// Attempt is one effect that this process performs: an attempt in flight.
type Attempt struct {
	Key    string
	Effect machine.Effect
	// Config is the run's configuration at the request.
	Config machine.Config
	// StartedHere is the run's value when the attempt began.
	StartedHere bool
	// Context ends when the outcome is not wanted any more.
	Context context.Context
	cancel  context.CancelCauseFunc
	// pulse watches the executor; nil without a heartbeat.
	pulse *pulse
	// can holds the capabilities of the executor, nil until it was asked.
	can *activities.Capabilities
	// Done, if not nil, returns the attempt's place to the queue; see Leave.
	Done func()
	// Restarted is when this process repeated an attempt of another process; zero for an attempt requested here.
	Restarted time.Time
}

// NewAttempt returns an attempt whose context ends with parent at the latest. The context is made before the executor is called, so that
// the executor sees every end.
func NewAttempt(parent context.Context, e machine.Effect, config machine.Config, startedHere bool) *Attempt {
	a := &Attempt{Key: e.Key(), Effect: e, Config: config, StartedHere: startedHere}
	a.Context, a.cancel = context.WithCancelCause(WithTraceParent(parent, config.TraceParent))
	return a
}

// Cancel ends the attempt's context, with a cause.
func (a *Attempt) Cancel(cause error) { a.cancel(cause) }

// Leave returns the attempt's place to the queue: its executor has returned.
func (a *Attempt) Leave() {
	if a.Done != nil {
		a.Done()
		a.Done = nil
	}
}

// Release frees the context of an attempt that has ended.
func (a *Attempt) Release() {
	a.cancel(ErrUnwanted)
	a.Leave()
}

// Repeated reports whether the attempt may have been performed before, in part or as a whole.
func (a *Attempt) Repeated() bool { return !a.Restarted.IsZero() }

// Late reports whether the attempt's deadline has passed.
func (a *Attempt) Late(now time.Time) bool {
	deadline := a.Effect.Base().Deadline
	return !deadline.IsZero() && !now.Before(deadline)
}
