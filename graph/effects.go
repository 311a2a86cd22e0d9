package graph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// call performs an attempt of an activity or delegate. ok is false if there is no outcome to record, because the
// Runner is closed or the outcome is not wanted any more.
func (r *Runner) call(x *run, f *flight) (in machine.Input, ok bool) {
	ctx, stop := f.callContext(r.now())
	defer stop()
	switch e := f.effect.(type) {
	case *machine.ActivityEffect:
		out := r.execute(ctx, x, f, e)
		out.Key = f.key
		in = out
	case *machine.DelegateEffect:
		in = r.delegate(ctx, x, f, e)
	case *machine.PollEffect:
		in = r.poll(ctx, x, f, e)
	}
	if f.ctx.Err() != nil && failed(in) {
		return nil, false
	}
	return in, true
}

// failed reports whether an executor has nothing to show.
func failed(in machine.Input) bool {
	switch in := in.(type) {
	case machine.Outcome:
		return !in.OK
	case machine.TaskUpdate:
		return in.Failed
	}
	return false
}

func (r *Runner) execute(ctx context.Context, x *run, f *flight, e *machine.ActivityEffect) (out machine.Outcome) {
	if r.opts.Activities == nil {
		return failedOutcome(ctx, activities.NotConfigured(e.NodeType, e.NodeID))
	}
	defer recovered(r, x, &e.EffectBase, &out)
	res, err := r.opts.Activities.Execute(ctx, *r.activityRequest(x, f, e))
	if err != nil {
		out = failedOutcome(ctx, err)
		out.Repair = r.plainRepair(x, e, out.Repair)
		return out
	}
	return r.outcome(res.Output, res.Usage)
}

// immediate reports whether a flight is answered at once: by an executor that says so, or because there is none.
func (r *Runner) immediate(x *run, f *flight) (yes bool) {
	defer func() {
		if recover() != nil {
			yes = false // the call itself will tell
		}
	}()
	switch e := f.effect.(type) {
	case *machine.ActivityEffect:
		if r.opts.Activities == nil {
			return true
		}
		if i, ok := r.opts.Activities.(activities.Immediate); ok {
			return i.Immediate(*r.activityRequest(x, f, e))
		}
	case *machine.DelegateEffect:
		if r.opts.Delegates == nil {
			return true
		}
		if e.Task != nil {
			return false
		}
		if i, ok := r.opts.Delegates.(delegate.Immediate); ok {
			return i.Immediate(*r.delegateRequest(x, f, e))
		}
	}
	return false
}

func (r *Runner) activityRequest(x *run, f *flight, e *machine.ActivityEffect) *activities.Request {
	if f.activity != nil {
		return f.activity
	}
	f.activity = &activities.Request{
		ExecutionID: x.id, NodeID: e.NodeID, NodeType: e.NodeType, Config: e.Config, Metadata: e.Metadata,
		Visit: e.Visit, Attempt: e.Attempt, Deadline: e.Deadline, IdempotencyKey: idempotencyKey(x.id, e.EffectKey),
		State: func() map[string]any { return copyState(e.State) }, Heartbeat: r.heartbeat(x, &e.EffectBase),
	}
	if e.Repair != nil {
		f.activity.Repair = jsonvalue.CloneMap(e.Repair)
	}
	if s := e.Span; s != nil {
		f.activity.Branch = &activities.Branch{
			ParallelNodeID: s.ParallelNodeID, JoinTargetID: s.JoinTargetID, Name: s.BranchName, EntryNodeID: s.BranchEntryNodeID,
		}
	}
	return f.activity
}

// heartbeat logs a sign of life, and tells who waits for the run.
func (r *Runner) heartbeat(x *run, e *machine.EffectBase) func(map[string]any) {
	p := Progress{ExecutionID: x.id, NodeID: e.NodeID, Kind: ExecutorAlive, Attempt: e.Attempt}
	if e.Span != nil {
		p.Branch = e.Span.BranchName
	}
	return func(details map[string]any) {
		p := p
		p.Detail = maps.Clone(details)
		r.hub.tell(p)
		r.log.Debug("attempt is alive", logRun, x.id, logKey, e.EffectKey, logDetail, details)
	}
}

// idempotencyKey names an attempt among all runs.
func idempotencyKey(executionID, key string) string { return executionID + ":" + key }

// copyState is a deep copy of a state or input; nil counts as empty.
func copyState(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return jsonvalue.CloneMap(m)
}

// outcome makes a successful outcome of what an executor returned, or a failed one if that is no JSON or too large.
func (r *Runner) outcome(output any, usage map[string]any) machine.Outcome {
	plain, err := jsonvalue.Normalize(output)
	if err != nil {
		return machine.Outcome{
			Code: string(problem.ActivityOutputInvalid), Error: "the output cannot be recorded: " + err.Error(),
			Usage: plainUsage(usage),
		}
	}
	if limit := r.opts.MaxDocumentBytes; jsonvalue.Size(plain, limit) > limit {
		return machine.Outcome{
			Code:  string(problem.ActivityOutputTooLarge),
			Error: fmt.Sprintf("the output exceeds the limit of %d bytes", limit),
			Usage: plainUsage(usage),
		}
	}
	return machine.Outcome{OK: true, Output: plain, Usage: plainUsage(usage)}
}

// plainUsage is what an executor reports as its usage, nil if that is no JSON: an attempt does not fail for it.
func plainUsage(usage map[string]any) map[string]any {
	if usage == nil {
		return nil
	}
	plain, err := jsonvalue.Normalize(usage)
	if err != nil {
		return nil
	}
	object, _ := plain.(map[string]any)
	return object
}

// plainRepair is what an executor gives for a repair, nil if that cannot be recorded: then there is none.
func (r *Runner) plainRepair(x *run, e *machine.ActivityEffect, repair map[string]any) map[string]any {
	if repair == nil {
		return nil
	}
	plain, err := jsonvalue.Normalize(repair)
	if limit := r.opts.MaxDocumentBytes; err == nil && jsonvalue.Size(plain, limit) > limit {
		err = fmt.Errorf("it exceeds the limit of %d bytes", limit)
	}
	if err != nil {
		r.log.Warn("what the executor gave for a repair cannot be recorded; there is none", logRun, x.id, logKey, e.EffectKey, logError, err)
		return nil
	}
	object, _ := plain.(map[string]any)
	return object
}

// failedOutcome makes a failed outcome of an executor's error.
func failedOutcome(ctx context.Context, err error) machine.Outcome {
	out := machine.Outcome{Error: err.Error(), Code: string(problem.ExecutorFailed)}
	late := context.Cause(ctx) == errLate && errors.Is(err, context.DeadlineExceeded)
	if fail, ok := errors.AsType[*activities.Failure](err); late {
		// The timer of the deadline races this outcome: the code is the same whichever is first, and whatever name the
		// executor has for it.
		out.Code = string(problem.Timeout)
	} else if ok {
		if fail.Code != "" {
			out.Code = fail.Code
		}
		out.Final = fail.Retryable == activities.RetryPointless
		out.RetryAfter = max(fail.RetryAfter, 0)
		out.Usage, out.Repair = plainUsage(fail.Usage), fail.Repair
	} else if p, ok := problem.As(err); ok {
		out.Code = string(p.Code)
	}
	if out.Error == "" {
		out.Error = out.Code
	}
	return out
}

func refusedOutcome(code problem.Code, format string, args ...any) machine.Outcome {
	return machine.Outcome{Code: string(code), Error: fmt.Sprintf(format, args...), Final: true}
}

// recovered turns an executor's panic into a failed attempt.
func recovered(r *Runner, x *run, e *machine.EffectBase, out *machine.Outcome) {
	if v := recover(); v != nil {
		r.panicked(x, e, v, out)
	}
}

func (r *Runner) panicked(x *run, e *machine.EffectBase, v any, out *machine.Outcome) {
	r.log.Error("executor panicked", logRun, x.id, logKey, e.EffectKey, logError, v, logStack, string(debug.Stack()))
	*out = machine.Outcome{Code: string(problem.ExecutorPanic), Error: fmt.Sprintf("the executor panicked: %v", v)}
}
