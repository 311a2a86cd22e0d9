package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// drive plays host and people until the run has ended. Like a host, it repeats calls that fail.
func (x *trial) drive(r *graph.Runner) (*view.Run, error) {
	ctx := x.t.Context()
	var run *view.Run
	_, err := r.Recover(ctx, graph.RecoverRequest{}) // as a server does at its start
	for range 4000 {
		if run == nil {
			run, err = x.begin(ctx, r)
		} else {
			seen := run.Seq
			run, err = x.next(ctx, r, run)
			if run != nil && run.Seq == seen && run.Status == machine.Running {
				x.patience = min(2*x.patience, time.Hour)
				_, err = r.Recover(ctx, graph.RecoverRequest{}) // as a server does from time to time
			} else {
				x.patience = leaseTTL
			}
		}
		if err == nil && run != nil && run.Status.Terminal() {
			return run, nil
		}
		if err == nil {
			continue
		}
		if p, ok := problem.As(err); !ok || errors.Is(err, problem.RunnerClosed) || p.Code != problem.Internal && !x.fault.Struck() {
			return nil, err
		}
		time.Sleep(time.Second)
		if again, serr := r.Status(ctx, graph.StatusRequest{ExecutionID: crashRun}); serr == nil {
			run = again
			if run.Status.Terminal() {
				return run, nil
			}
		}
	}
	return nil, fmt.Errorf("run did not end: %v, %v", run, err)
}

// next answers the first thing that the run waits for.
func (x *trial) next(ctx context.Context, r *graph.Runner, run *view.Run) (*view.Run, error) {
	var p *view.Pending
	for i := range run.Pending {
		if k := run.Pending[i].Kind; run.Pending[i].Host || k == machine.WaitInterrupt || k == machine.WaitSignal {
			p = &run.Pending[i]
			break
		}
	}
	if x.m.cancel && (p != nil || x.cancelled) {
		x.cancelled = true
		return r.Cancel(ctx, graph.CancelRequest{ExecutionID: crashRun, Reason: "enough"})
	}
	if p == nil {
		limit := 20_000 * time.Hour // more than any timer
		if run.Status == machine.Running {
			limit = x.patience
		} else if !soak.On() {
			sleepUntilDue(run)
		}
		return r.Status(ctx, graph.StatusRequest{ExecutionID: crashRun, Wait: &graph.Wait{Limit: limit}})
	}
	switch p.Kind {
	case machine.WaitInterrupt:
		return x.give(p.ID, p.SignalName, payloads(x.c.answers, p.ResumeSchema), func(payload object) (*view.Run, error) {
			return r.Resume(ctx, graph.ResumeRequest{ExecutionID: p.ExecutionID, InterruptID: p.ID, Payload: payload})
		})
	case machine.WaitSignal:
		return x.give(p.ID, p.SignalName, payloads(x.c.signals[p.SignalName], nil), func(payload object) (*view.Run, error) {
			return r.Signal(ctx, graph.SignalRequest{ExecutionID: p.ExecutionID, Name: p.SignalName, Payload: payload})
		})
	}
	return x.submit(ctx, r, p)
}

// sleepUntilDue sleeps through a long wait of the run. A status call would poll the run meanwhile, which would be most of
// the run's operations.
func sleepUntilDue(run *view.Run) {
	var due time.Time
	for _, p := range run.Pending {
		if due.IsZero() || !p.Due.IsZero() && p.Due.Before(due) {
			due = p.Due
		}
	}
	if wait := time.Until(due); wait > time.Minute {
		time.Sleep(wait)
	}
}

// give tries payloads until the run accepts one. A wait that has received one gets the same again, because the answer may
// have been lost.
func (x *trial) give(id, signal string, tries []object, call func(object) (*view.Run, error)) (run *view.Run, err error) {
	if payload, ok := x.given[id]; ok {
		tries = append([]object{payload}, tries...)
	} else if x.inOrder {
		tries = tries[min(x.answered[signal], len(tries)-1):]
	}
	for _, payload := range tries {
		run, err = call(payload)
		if !errors.Is(err, problem.InvalidResumePayload) && !errors.Is(err, problem.SignalValidationError) {
			if _, again := x.given[id]; !again {
				x.answered[signal]++
			}
			x.given[id] = payload
			break
		}
	}
	if run != nil && run.ExecutionID != crashRun {
		return nil, err // the answer is about a subworkflow; status says where the root stands
	}
	return run, err
}

func (x *trial) submit(ctx context.Context, r *graph.Runner, p *view.Pending) (*view.Run, error) {
	x.called(p.ExecutionID, p.NodeID, p.Visit, p.Attempt, p.IdempotencyKey)
	req := graph.SubmitRequest{
		ExecutionID: p.ExecutionID, NodeID: p.NodeID, Span: p.Span, OK: true, IdempotencyKey: p.IdempotencyKey, CorrelationID: p.CorrelationID,
	}
	if p.Kind == machine.WaitDelegate {
		res, err := delegate.Mock{}.Execute(ctx, activities.Request{NodeType: "agent_delegate", Protocol: p.Protocol, Input: p.DelegateInput, CorrelationID: p.CorrelationID})
		if err != nil {
			return nil, err
		}
		req.Result, _ = res.Output.(object)
	} else {
		res, err := x.c.outcome(p.NodeID, nil, p.Attempt)
		req.OK = err == nil
		if failure, ok := errors.AsType[*activities.Failure](err); ok {
			req.Error, req.Code = failure.Message, failure.Code
		} else if req.Result, ok = res.Output.(object); !ok && res.Output != nil {
			req.Result = object{"value": res.Output}
		}
	}
	run, err := r.SubmitActivity(ctx, req)
	if errors.Is(err, problem.SubmitValidationError) { // the result does not fit the state: the host reports a failure
		req.OK, req.Result, req.Error, req.Code = false, nil, "not accepted", "NO"
		run, err = r.SubmitActivity(ctx, req)
	}
	if run != nil && run.ExecutionID != crashRun {
		return nil, err
	}
	return run, err
}
