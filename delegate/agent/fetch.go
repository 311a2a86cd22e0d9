package agent

import (
	"context"
	"sync"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
)

// results are the numbers of the steps that hold results, by their keys.
type results struct {
	mu    sync.Mutex
	steps int
	at    map[string]int
}

// note counts steps that are recorded, in their order.
func (r *results) note(steps []agentloop.Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range steps {
		r.steps++
		if s := &steps[i]; s.Kind == agentloop.StepResult {
			if r.at == nil {
				r.at = map[string]int{}
			}
			r.at[s.Key] = r.steps
		}
	}
}

// number is the number of a result, 0 for no result.
func (r *results) number(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at[key]
}

// fetch reads a part of a recorded result. The journal has it: an agent keeps no result in memory that its model does not see.
func (w *attempt) fetch(ctx context.Context, e *agentloop.FetchResult, totals map[string]any) (any, *agentloop.Failure) {
	n := w.results.number(e.Ref)
	if n == 0 {
		return nil, agentloop.NoResult(e.Ref)
	}
	w.beat(e.Agent, e.Key, atTool, totals, map[string]any{"tool": e.Tool()})
	step, err := w.journal.Step(ctx, n)
	if err != nil {
		return nil, failure(err)
	}
	large := agentloop.LargeOf(step.Body)
	if large == nil {
		return e.View.Of(e.Ref, step.Body)
	}
	return e.View.OfLarge(e.Ref, large, func(i int) (string, *agentloop.Failure) {
		piece, err := w.journal.Step(ctx, n-len(large.Pieces)+i)
		if err != nil {
			return "", failure(err)
		}
		text, _ := piece.Body[activities.PieceMember].(string)
		return text, nil
	})
}
