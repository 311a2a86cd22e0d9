package temporal

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/internal/outbox"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// performer performs the activities of runs with the executors of a process.
type performer struct {
	activities, delegates activities.Executor
	maxBytes              int
	log                   *slog.Logger
	library               *library.Library
	side                  SideStore
	archive               Archive
	// past reads the records of runs; nil if the process cannot. maxRun bounds the bytes of a run.
	past   reader
	maxRun int64
	// box makes the bodies of webhooks and knows their targets, send sends them; nil if the process does not.
	box  *outbox.Box
	send outbox.Send
	// turns gives attempts their turns.
	turns turns
	// beats is the pause between two signs of life of an attempt.
	beats time.Duration
	// missing tells which executors the process lacks.
	missing *work.Performer
}

func newPerformer(o *Options, lib *library.Library) *performer {
	p := &performer{
		activities: o.Activities, delegates: o.Delegates, maxBytes: o.MaxDocumentBytes, log: o.Logger, library: lib, side: o.SideStore, archive: o.Archive,
		beats: o.WorkerLost / 4, maxRun: o.MaxBytes, send: o.Deliver,
		box: &outbox.Box{Targets: outbox.Targets{}, Glossary: o.Glossary},
	}
	if o.Redaction != nil {
		p.box.Redaction = *o.Redaction
	}
	for name, w := range o.Webhooks {
		p.box.Targets[name] = outbox.Target(w)
	}
	p.missing = p.of(context.Background(), nil)
	return p
}

// of returns the part that performs one attempt.
func (p *performer) of(ctx context.Context, runs work.Runs) *work.Performer {
	return &work.Performer{
		Env: work.Env{
			Now: time.Now, Log: p.log, Context: ctx,
			Go: func(f func()) { f() }, // the activity waits for it
		},
		Activities: p.activities, Delegates: p.delegates, MaxBytes: p.maxBytes, Runs: runs,
	}
}

// perform performs an attempt of an activity or a delegation, or polls a delegation's task.
func (p *performer) perform(ctx context.Context, a attempt, effect machine.Effect) (performed, error) {
	info := activity.GetInfo(ctx)
	if missing, _, _ := p.missing.Missing(nodeOf(effect)); missing != "" {
		// Another worker may have it.
		return performed{}, sdk.NewApplicationError("this worker lacks "+missing, string(problem.ExecutorNotConfigured))
	}
	runs := &attemptRuns{performer: p, attempt: &a, beat: func(details map[string]any) { activity.RecordHeartbeat(ctx, details) }}
	if err := runs.load(ctx, effect); err != nil {
		return performed{}, err
	}
	stop := p.beat(ctx)
	defer stop()
	own := work.NewAttempt(ctx, effect, machine.Config{ExecutionID: a.ExecutionID, TraceParent: a.TraceParent}, true)
	defer own.Release()
	if info.Attempt > 1 || runs.begun {
		own.Restarted = time.Now()
	}
	w := p.of(ctx, runs)
	in, ok := w.Perform(a.ExecutionID, own)
	if ctx.Err() != nil {
		if task := w.UnwantedTask(own, in); ok && task != nil {
			w.CancelTasks(a.ExecutionID, task)
		}
		return performed{}, ctx.Err()
	}
	if out, ends := in.(machine.Outcome); runs.unread != nil && (!ok || ends && !out.OK) {
		return performed{}, sdk.NewApplicationError(runs.unread.Error(), string(problem.StoreUnavailable))
	}
	return performedOf(runs.complete(in)), nil
}

// nodeOf returns the node of an effect, as far as its executor knows it.
func nodeOf(effect machine.Effect) *definition.Node {
	n := &definition.Node{ID: effect.Base().NodeID}
	switch e := effect.(type) {
	case *machine.ActivityEffect:
		n.Type, n.Config = definition.Type(e.NodeType), e.Config
	case *machine.DelegateEffect:
		n.Type, n.Delegate = definition.AgentDelegate, &definition.DelegateConfig{Protocol: e.Protocol, AgentID: e.AgentID}
	case *machine.PollEffect:
		n.Type, n.Delegate = definition.AgentDelegate, &definition.DelegateConfig{Protocol: e.Protocol, AgentID: e.AgentID}
	}
	return n
}

// beat reports signs of life until stop is called: a lost worker is noticed without a limit for the duration of attempts.
func (p *performer) beat(ctx context.Context) (stop func()) {
	done := make(chan struct{})
	go func() {
		t := time.NewTicker(p.beats)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-t.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	}()
	return func() { close(done) }
}

// turns asks runs for the effects of attempts that have waited for their turn.
type turns interface {
	turn(ctx context.Context, id, turn, updateID string) (attempt, error)
}

// Perform performs an attempt of a step, llm_call or tool_call.
func (p *performer) Perform(ctx context.Context, a attempt) (performed, error) {
	if a.Turn != "" {
		var err error
		if a, err = p.takeTurn(ctx, a); err != nil {
			return performed{}, err
		}
	}
	return p.perform(ctx, a, a.Activity)
}

// Delegate performs an attempt of an agent_delegate.
func (p *performer) Delegate(ctx context.Context, a attempt) (performed, error) {
	if a.Turn != "" {
		var err error
		if a, err = p.takeTurn(ctx, a); err != nil {
			return performed{}, err
		}
	}
	return p.perform(ctx, a, a.Delegate)
}

// Poll asks an agent for the state of a task.
func (p *performer) Poll(ctx context.Context, a attempt) (performed, error) {
	return p.perform(ctx, a, &machine.PollEffect{DelegateEffect: *a.Delegate})
}

// Release cancels a task at an agent.
func (p *performer) Release(ctx context.Context, a attempt) error {
	p.of(ctx, &attemptRuns{performer: p, attempt: &a}).CancelTasks(a.ExecutionID, a.Delegate)
	return nil
}

// Resolve finds the definition of a subworkflow. A rejection is a result; after a failure of this process the activity is repeated.
func (p *performer) Resolve(ctx context.Context, r reference) (resolved, error) {
	stop := p.beat(ctx)
	defer stop()
	prog, err := p.library.Resolve(ctx, library.WorkflowName{Ref: r.Ref, Pin: r.Pin, Version: r.Version})
	if err != nil {
		if admit.IsRefusal(err) {
			return resolved{Refused: wireOf(err)}, nil
		}
		return resolved{}, err
	}
	return resolved{Definition: prog.Hash, Library: bind(ctx, p.library, prog, r.Inherited)}, nil
}

// errNoJournal is the error of an executor that keeps a journal, in a process without a side store.
var errNoJournal = problem.New(problem.Unsupported, "agents with journals need a side store on Temporal").
	WithHint("Configure a side store for the workers, or use an engine with its own database.")
