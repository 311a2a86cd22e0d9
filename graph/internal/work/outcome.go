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

// outcome returns a successful outcome with an executor's output, or a failed one if the output is not JSON or too large.
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

// usageOf returns the usage of a result, including whether the result is partial.
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

// plainUsage returns an executor's usage, nil if it is not JSON, which does not fail the attempt.
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

// maxData bounds the data of a failure, which is in each record of the failure and may become part of the state.
const maxData = 16 << 10

// plainData returns the data of an executor's failure, nil if it is not JSON or too large.
func plainData(data map[string]any) map[string]any {
	if plain := plainUsage(data); len(plain) > 0 && jsonvalue.Size(plain, maxData) <= maxData {
		return plain
	}
	return nil
}

// failedOutcome returns a failed outcome for an executor's error.
func failedOutcome(ctx context.Context, err error) machine.Outcome {
	out := machine.Outcome{Error: err.Error(), Code: string(problem.ExecutorFailed)}
	late := context.Cause(ctx) == ErrDeadline && errors.Is(err, context.DeadlineExceeded)
	if fail, ok := errors.AsType[*activities.Failure](err); late {
		// The timer of the deadline races this outcome. The code is the same for both, whatever the executor calls it.
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

// Exited returns a failed outcome for an executor that ended its goroutine.
func (p *Performer) Exited(executionID string, a *Attempt) machine.Outcome {
	p.Log.Error("executor "+guard.Exited, logRun, executionID, logKey, a.Key)
	return machine.Outcome{Key: a.Effect.Base().EffectKey, Code: string(problem.ExecutorPanic), Error: "the executor " + guard.Exited}
}

// panicked returns a failed outcome for an executor's panic.
func (p *Performer) panicked(executionID, key string, v any) machine.Outcome {
	p.Log.Error("executor panicked", logRun, executionID, logKey, key, logError, v, logStack, string(debug.Stack()))
	return machine.Outcome{Code: string(problem.ExecutorPanic), Error: fmt.Sprintf("the executor panicked: %v", v)}
}
