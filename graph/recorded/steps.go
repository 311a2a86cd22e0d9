package recorded

import (
	"context"
	"slices"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/runview"
	"github.com/workflows-engine/workflows-engine/history"
)

// stepPage is how many records are read at a time.
const stepPage = 256

// Steps returns the recorded steps of an attempt, the oldest first. first is the seq of the first one.
func Steps(ctx context.Context, store history.Store, executionID string, of *machine.EffectBase, first int64) ([]activities.Step, error) {
	var steps []activities.Step
	for {
		records, err := store.Read(ctx, executionID, first, stepPage)
		if err != nil {
			return nil, err
		}
		for i := range records {
			r := &records[i]
			p := &r.Payload
			if p.NodeID != of.NodeID || max(p.Visit, 1) != of.Visit || max(p.Attempt, 1) != of.Attempt {
				continue
			}
			if s, _, ok := machine.StepOf(r); ok {
				steps = append(steps, activities.Step{Key: s.Key, Kind: s.Kind, Body: s.Body, Totals: s.Totals, At: r.CreatedAt})
			}
		}
		if len(records) < stepPage {
			return steps, nil
		}
		first = records[len(records)-1].Seq + 1
	}
}

// Has reports whether steps are recorded, as the last ones of their attempt.
func Has(ctx context.Context, store history.Store, executionID string, of *machine.EffectBase, s *machine.StepsRecorded) bool {
	all, err := Steps(ctx, store, executionID, of, 1)
	return err == nil && len(all) == s.Index+len(s.Steps) &&
		slices.EqualFunc(all[s.Index:], s.Steps, func(r activities.Step, s machine.Step) bool { return r.Key == s.Key && r.Kind == s.Kind })
}

// Questions adds to what a run waits for what the questions of executors show, which only the records say.
func Questions(ctx context.Context, store history.Store, pending []runview.Pending) error {
	for i := range pending {
		p := &pending[i]
		if p.QuestionSeq == 0 {
			continue
		}
		records, err := store.Read(ctx, p.ExecutionID, p.QuestionSeq, 1)
		if err != nil {
			return err
		}
		if len(records) == 1 {
			if q := machine.QuestionOf(&records[0]); q != nil && len(q.Body) > 0 {
				p.Show = q.Body
			}
		}
	}
	return nil
}
