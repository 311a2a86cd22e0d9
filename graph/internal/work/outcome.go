package work

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/guard"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// outcome makes a successful outcome of what an executor returned, or a failed one if that is not JSON or too large.
func (p *Performer) outcome(output any, usage map[string]any) machine.Outcome {
	plain, err := jsonvalue.Normalize(output)
	switch {
	case err != nil:
		return machine.Outcome{
			Code: string(problem.ActivityOutputInvalid), Error: "the output cannot be recorded: " + err.Error(),
			Usage: plainUsage(usage),
		}
	case jsonvalue.Size(plain, p.MaxBytes) > p.MaxBytes:
		return machine.Outcome{
			Code:  string(problem.ActivityOutputTooLarge),
			Error: fmt.Sprintf("the output exceeds the limit of %d bytes", p.MaxBytes),
			Usage: plainUsage(usage),
		}
	}
	return machine.Outcome{OK: true, Output: plain, Usage: plainUsage(usage)}
}

// usageOf is the usage of a result, which says whether the result is partial.
func usageOf(r *activities.Result) map[string]any {
	if !r.Partial {
		return r.Usage
	}
	usage := maps.Clone(r.Usage)
	if usage == nil {
		usage = map[string]any{}
	}
	usage[machine.UsagePartial] = true
	if _, given := usage[machine.UsagePartialReason].(string); !given {
		usage[machine.UsagePartialReason] = ""
	}
	return usage
}

// plainUsage is what an executor reports as its usage, nil if that is not JSON: an attempt does not fail for it.
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

// maxData bounds what a failure carries besides: it stands in each record of the failure, and may get into the state.
const maxData = 16 << 10

// plainData is what an executor's failure carries, nil if that is not JSON or too large.
func plainData(data map[string]any) map[string]any {
	if plain := plainUsage(data); len(plain) > 0 && jsonvalue.Size(plain, maxData) <= maxData {
		return plain
	}
	return nil
}

// failedOutcome makes a failed outcome of an executor's error.
func failedOutcome(ctx context.Context, err error) machine.Outcome {
	out := machine.Outcome{Error: err.Error(), Code: string(problem.ExecutorFailed)}
	late := context.Cause(ctx) == ErrDeadline && errors.Is(err, context.DeadlineExceeded)
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
		out.Usage, out.Repair, out.Data = plainUsage(fail.Usage), fail.Repair, plainData(fail.Data)
	} else if p, ok := problem.As(err); ok {
		out.Code = string(p.Code)
	}
	if out.Error == "" {
		out.Error = out.Code
	}
	return out
}

// Exited makes a failed outcome of an executor that has ended its goroutine.
func (p *Performer) Exited(executionID string, a *Attempt) machine.Outcome {
	p.Log.Error("executor "+guard.Exited, logRun, executionID, logKey, a.Key)
	return machine.Outcome{Key: a.Effect.Base().EffectKey, Code: string(problem.ExecutorPanic), Error: "the executor " + guard.Exited}
}

// panicked makes a failed outcome of an executor's panic.
func (p *Performer) panicked(executionID, key string, v any) machine.Outcome {
	p.Log.Error("executor panicked", logRun, executionID, logKey, key, logError, v, logStack, string(debug.Stack()))
	return machine.Outcome{Code: string(problem.ExecutorPanic), Error: fmt.Sprintf("the executor panicked: %v", v)}
}
