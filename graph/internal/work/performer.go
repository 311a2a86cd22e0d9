package work

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// Performer performs attempts with the executors of a process. All fields are required, except for the executors.
type Performer struct {
	Env
	// Activities performs step, llm_call and tool_call nodes, Delegates agent_delegate nodes; nil performs no nodes.
	Activities activities.Executor
	Delegates  activities.Executor
	// Turns holds the attempts that wait for their turn.
	Turns *Queue
	// MaxBytes bounds each output, as canonical JSON.
	MaxBytes int
	Requests Requests
	Runs     Runs
	// InFlight holds the attempts under way.
	InFlight InFlight

	shown foundLacks
}

// Runs are the runs of the attempts, as a Performer uses them.
type Runs interface {
	// Recorded returns the journal entries of an attempt, the oldest first, or, unless n is 0, the n-th alone, counted from 1. first is the
	// seq of the first one.
	Recorded(ctx context.Context, executionID string, a *Attempt, first int64, n int) ([]activities.Step, error)
	// Record commits journal entries of an attempt that this process performs.
	Record(executionID string, a *Attempt, s machine.StepsRecorded) error
	// Room returns how many bytes the run may still take, by its own limit.
	Room(ctx context.Context, executionID string) (int64, error)
	// KeepsTasks reports whether the run was ended so that its tasks at agents continue, as tasks of a copy elsewhere.
	KeepsTasks(ctx context.Context, executionID string) (bool, error)
	// Silent records the failure of an attempt whose executor has not returned after too long a silence.
	Silent(executionID string, a *Attempt, in machine.Input)
	// Alive receives the heartbeats of executors.
	Alive(Heartbeat)
}

// Heartbeat is a sign of life of an executor.
type Heartbeat struct {
	ExecutionID, NodeID string
	// Branch is the parallel branch of the node, "" outside.
	Branch  string
	Attempt int
	// Details are the executor's data about its progress.
	Details map[string]any
}

// The keys of log records. The first three are those of package run.
const (
	logRun     = "execution_id"
	logKey     = "effect"
	logError   = "error"
	logTask    = "external_task_id"
	logDetails = "details"
	logStack   = "stack"
	logCode    = "code"
	logNode    = "node_id"
	logAttempt = "attempt"
)

// Perform performs an attempt of an activity or delegate, or polls a delegate's task. ok is false if the outcome is not wanted any more.
func (p *Performer) Perform(executionID string, a *Attempt) (in machine.Input, ok bool) {
	ctx, stop := withDeadline(a, p.Now())
	defer stop()
	ctx, end := p.watch(ctx, executionID, a)
	defer end()
	switch e := a.Effect.(type) {
	case *machine.ActivityEffect:
		in = p.activity(ctx, executionID, a, e)
	case *machine.DelegateEffect:
		in = p.delegate(ctx, executionID, a, e)
	case *machine.TurnEffect:
		return e.Input(), true
	case *machine.WalkEffect:
		return machine.Continue{Key: e.EffectKey}, true
	case *machine.PollEffect:
		in = p.poll(ctx, executionID, a, e)
	}
	if out, ok := in.(machine.Outcome); ok && !out.OK && context.Cause(ctx) == error(ErrSilent) {
		said := silent(a)
		out.Code, out.Error, out.Final, out.RetryAfter, out.Repair, out.Data = said.Code, said.Error, false, 0, nil, nil
		in = out
	}
	if a.Context.Err() != nil && failed(in) {
		return nil, false
	}
	return in, true
}

// withDeadline returns the context for an executor, which also ends at the attempt's deadline, by the engine's clock.
func withDeadline(a *Attempt, now time.Time) (context.Context, context.CancelFunc) {
	deadline := a.Effect.Base().Deadline
	if deadline.IsZero() {
		return a.Context, func() {}
	}
	return context.WithDeadlineCause(a.Context, time.Now().Add(deadline.Sub(now)), ErrDeadline)
}

// failed reports whether an input is a failure.
func failed(in machine.Input) bool {
	switch in := in.(type) {
	case machine.Outcome:
		return !in.OK
	case machine.TaskUpdate:
		return in.Failed
	}
	return false
}

// Immediate reports whether an attempt gets its outcome at once: from such an executor, or because the executor is missing.
func (p *Performer) Immediate(a *Attempt) bool {
	switch e := a.Effect.(type) {
	case *machine.WalkEffect:
		return true
	case *machine.ActivityEffect:
		return p.capabilitiesFor(a).Immediate
	case *machine.DelegateEffect:
		return p.capabilitiesFor(a).Immediate && (e.Task == nil || p.Delegates == nil)
	}
	return false
}

// capabilitiesFor returns the capabilities of the executor for an attempt. The executor is asked once, so that the attempt is performed as
// it was queued.
func (p *Performer) capabilitiesFor(a *Attempt) activities.Capabilities {
	if a.can == nil {
		can, _ := p.capabilities(effectNode(a.Effect))
		a.can = &can
	}
	return *a.can
}

// effectNode returns the node of an effect as executors know it.
func effectNode(e machine.Effect) activities.Node {
	switch e := e.(type) {
	case *machine.ActivityEffect:
		return activities.Node{ID: e.NodeID, Type: e.NodeType, Config: e.Config}
	case *machine.DelegateEffect:
		return activities.Node{ID: e.NodeID, Type: delegateType, Protocol: e.Protocol, AgentID: e.AgentID}
	}
	return activities.Node{}
}

// heartbeat returns the function that executors call to report that they are alive.
func (p *Performer) heartbeat(executionID string, e *machine.EffectBase) func(map[string]any) {
	beat := Heartbeat{ExecutionID: executionID, NodeID: e.NodeID, Attempt: e.Attempt}
	if e.Span != nil {
		beat.Branch = e.Span.BranchName
	}
	return func(details map[string]any) {
		b := beat
		b.Details = maps.Clone(details)
		p.Runs.Alive(b)
		if p.Log.Enabled(context.Background(), slog.LevelDebug) {
			shown := maps.Clone(details)
			delete(shown, activities.HeartbeatText)
			p.Log.Debug("attempt is alive", logRun, executionID, logKey, e.EffectKey, logDetails, shown)
		}
	}
}
