package run

import (
	"context"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// CheckAnswer says why the executor that has recorded the steps of an attempt cannot use the answer to its question; see
// graph.Options.CheckAnswer.
type CheckAnswer func(asked activities.RecordedAttempt, answer map[string]any) error

// Of checks an answer if it is one to the question of an executor among the waits of a run. Whether any question is meant, and whether it
// can still be answered, is for the machine to say.
func (check CheckAnswer) Of(ctx context.Context, store history.Store, executionID string, waits []machine.Wait, r machine.Resume) error {
	open := 0
	for i := range waits {
		if waits[i].Kind == machine.WaitInterrupt {
			open++
		}
	}
	if check == nil || r.Key == "" && open > 1 {
		return nil
	}
	for _, w := range waits {
		if w.Journal == nil || w.Journal.Question == nil || r.Key != "" && r.Key != w.Key {
			continue
		}
		of := machine.EffectBase{NodeID: w.NodeID, Visit: w.Visit, Attempt: w.Attempt}
		steps, err := RecordedSteps(ctx, store, executionID, &of, w.Journal.First, 0)
		if err != nil {
			return err
		}
		err = check(activities.RecordedAttempt{Steps: steps}, r.Payload)
		if e, ok := problem.As(err); ok {
			return e.WithPlace(problem.Place{ExecutionID: executionID, NodeID: w.NodeID})
		}
		return err
	}
	return nil
}
