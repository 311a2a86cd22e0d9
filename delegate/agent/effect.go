package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// perform performs an effect. totals are those of the attempt as it begins. It returns nil for a hook that has not decided because the
// attempt ends.
func (w *attempt) perform(ctx context.Context, e agentloop.Effect, totals map[string]any) agentloop.Input {
	began := w.agents.now()
	worked := func() time.Duration { return w.agents.now().Sub(began) }
	switch e := e.(type) {
	case agentloop.ListTools:
		l, err := guarded(ctx, w, "a toolset", func() (listing, error) { return w.agents.list(ctx, e.Agent, &w.req) })
		if err != nil {
			return agentloop.ToolsListed{Key: e.Key, Failure: failure(err)}
		}
		return agentloop.ToolsListed{Key: e.Key, Tools: l.tools, System: l.said}
	case agentloop.AskModel:
		return w.ask(ctx, &e, worked, totals)
	case agentloop.CallTool:
		returned := w.call(ctx, &e, totals)
		returned.Key, returned.Worked = e.Key, worked()
		return returned
	case agentloop.FetchResult:
		output, failure := w.fetch(ctx, &e, totals)
		return agentloop.ToolReturned{Key: e.Key, Output: output, Failure: failure, Worked: worked()}
	case agentloop.Decide:
		return w.decide(ctx, &e, totals)
	case agentloop.Rest:
		w.beat(e.Agent, e.Key, atWaiting, totals, nil)
		_ = wait.For(ctx, e.Until.Sub(w.agents.now()))
		return agentloop.Woken{Key: e.Key}
	default:
		return agentloop.Cancelled{Reason: fmt.Sprintf("the agent asks for %T", e)}
	}
}

// ask asks a model.
func (w *attempt) ask(ctx context.Context, e *agentloop.AskModel, worked func() time.Duration, totals map[string]any) agentloop.Input {
	ctx, stop := context.WithTimeoutCause(ctx, e.Timeout, errTurn)
	defer stop()
	req := e.Request
	req.Key = w.key(e.Key)
	arriving := w.arrivingText(e, totals)
	if !e.Compacts { // a summary is for the agent alone
		req.OnText = arriving.add
	}
	w.beatModel(e, totals, map[string]any{"received_chars": 0})
	model, ok := w.agents.config.Models[e.Model.Name]
	if !ok {
		return agentloop.ModelFailed{
			Key: e.Key, Try: e.Try, Code: problem.AgentConfigInvalid, Final: true, Worked: worked(),
			Message: fmt.Sprintf("model %q, which the agent began with, is not configured any more", e.Model.Name),
		}
	}
	reply, err := guarded(ctx, w, "the model", func() (chat.Reply, error) { return model.Chat.Chat(ctx, req) })
	arriving.end()
	if err == nil {
		return agentloop.ModelReplied{Key: e.Key, Try: e.Try, Reply: reply, Worked: worked()}
	}
	failed := agentloop.ModelFailed{
		Key: e.Key, Try: e.Try, Code: problem.ExecutorFailed, Message: err.Error(), Overloaded: errors.Is(err, chat.ErrOverloaded), Worked: worked(),
	}
	if _, ok := errors.AsType[*brokenError](err); ok {
		failed.Code = problem.ExecutorPanic
	} else if fail, ok := errors.AsType[*activities.Failure](err); ok {
		failed.Code, failed.Message = problem.Code(fail.Code), fail.Message
		failed.Final, failed.After = fail.Retryable == activities.RetryPointless, fail.RetryAfter
		failed.Usage = chat.UsageIn(fail.Usage)
		failed.Class, failed.Status = chat.ClassIn(fail.Data)
		failed.Code = problem.Code(failed.Class.Code(fail.Code))
	}
	if context.Cause(ctx) == errTurn {
		failed.Code, failed.Final, failed.Class, failed.Status = problem.Timeout, false, chat.ClassSlow, 0
	}
	w.report(e, &failed)
	return failed
}

// report logs problems that an operator has to fix, each time: an agent with another model continues silently.
func (w *attempt) report(e *agentloop.AskModel, f *agentloop.ModelFailed) {
	message := f.Message
	if mask := w.agents.config.Mask; mask != nil {
		message = mask(message)
	}
	if log := w.agents.config.Log; log != nil && (f.Class == chat.ClassCredentials || f.Class == chat.ClassUnknown || f.Class == chat.ClassQuota) {
		log.Error("an agent's model cannot be asked", "agent", e.Agent, "model", e.Model.Name, "class", string(f.Class), "status", f.Status,
			"code", string(f.Code), "error", message, "execution_id", w.req.ExecutionID, "node_id", w.req.NodeID)
	}
}

var (
	errTurn = errors.New("the turn has timed out")
	errTool = errors.New("the call has timed out")
	errHook = errors.New("the hook has timed out")
)

// call calls a tool. Whatever the tool does, there is a result.
func (w *attempt) call(ctx context.Context, e *agentloop.CallTool, totals map[string]any) (returned agentloop.ToolReturned) {
	ctx, stop := context.WithTimeoutCause(ctx, e.Timeout, errTool)
	defer stop()
	w.beat(e.Agent, e.Key, atTool, totals, map[string]any{"tool": e.Tool})
	var changed atomic.Pointer[[]string] // the call may outlive this function
	output, err := guarded(ctx, w, "the tool", func() (any, error) {
		set, now, err := w.agents.owner(ctx, e.Agent, e.Tool)
		if err == nil {
			changed.Store(new(w.changed(&e.Listed, &now)))
			set, err = narrowed(set, e.Agent, &w.req)
		}
		if err != nil {
			return nil, err
		}
		return set.Call(ctx, Call{Name: e.Tool, Arguments: e.Arguments, Key: w.key(e.Key), Heartbeat: w.req.Heartbeat, Request: w.req})
	})
	if c := changed.Load(); c != nil {
		returned.Changed = *c
	}
	_, broken := errors.AsType[*brokenError](err)
	switch {
	case err == nil:
		returned.Output = output
	case context.Cause(ctx) == errTool:
		returned.Failure = &agentloop.Failure{Code: agentloop.ToolTimeout, Message: fmt.Sprintf("the tool has not answered within %d ms", e.Timeout.Milliseconds())}
	case broken:
		returned.Failure = &agentloop.Failure{Code: agentloop.ToolPanic, Message: err.Error()}
	default:
		returned.Failure = failure(err)
	}
	return returned
}

// brokenError is how a function has ended that did not return.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

// guarded calls foreign code in a goroutine of its own: it may panic, end its goroutine, or not obey its context. The last
// has the context's cause as its error, while it goes on.
func guarded[T any](ctx context.Context, w *attempt, what string, do func() (T, error)) (T, error) {
	type returned struct {
		value T
		err   error
	}
	ended := make(chan returned, 1)
	w.all.Go(func() {
		out := returned{err: &brokenError{what + " ended its goroutine (runtime.Goexit) instead of returning"}}
		defer func() {
			if v := recover(); v != nil {
				out.err = &brokenError{fmt.Sprintf("%s panicked: %v", what, v)}
			}
			ended <- out
		}()
		out.value, out.err = do()
	})
	select {
	case out := <-ended:
		return out.value, out.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(stopWait)
	defer timer.Stop()
	select {
	case out := <-ended:
		return out.value, out.err
	case <-timer.C:
		var none T
		return none, context.Cause(ctx)
	}
}

// key identifies a step among those of all runs. A retry keeps the key of the run that started the agent.
func (w *attempt) key(step string) string { return cmp.Or(w.base, w.req.IdempotencyKey) + "/" + step }

func failure(err error) *agentloop.Failure {
	out := &agentloop.Failure{Code: problem.ExecutorFailed, Message: err.Error()}
	if _, ok := errors.AsType[*brokenError](err); ok {
		out.Code = problem.ExecutorPanic
	} else if fail, ok := errors.AsType[*activities.Failure](err); ok {
		out.Code, out.Message, out.Final = problem.Code(fail.Code), fail.Message, fail.Retryable == activities.RetryPointless
	}
	return out
}
