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
			if s, _, ok := stepOf(&records[i], of); ok {
				steps = append(steps, s)
			}
		}
		if len(records) < stepPage {
			return steps, nil
		}
		first = records[len(records)-1].Seq + 1
	}
}

// stepOf returns the step of an attempt in a record, and its number.
func stepOf(r *history.Record, of *machine.EffectBase) (activities.Step, int, bool) {
	p := &r.Payload
	if p.NodeID != of.NodeID || max(p.Visit, 1) != of.Visit || max(p.Attempt, 1) != of.Attempt {
		return activities.Step{}, 0, false
	}
	s, n, ok := machine.StepOf(r)
	return activities.Step{Key: s.Key, Kind: s.Kind, Body: s.Body, Totals: s.Totals, At: r.CreatedAt}, n, ok
}

// stepsNear is how many records are read at a time where a single step is looked for.
const stepsNear = 4

// Step returns the n-th recorded step of an attempt, counted from 1; false if there is none. Each step is a record, so that it is at least
// as far behind one that is found as their numbers say: where nothing else goes on in the run, the first look finds it.
func Step(ctx context.Context, store history.Store, executionID string, of *machine.EffectBase, first int64, n int) (activities.Step, bool, error) {
	seq := max(first, 1) + int64(n) - 1
	for {
		records, err := store.Read(ctx, executionID, seq, stepsNear)
		if err != nil {
			return activities.Step{}, false, err
		}
		next := seq + stepsNear
		for i := range records {
			s, number, ok := stepOf(&records[i], of)
			switch {
			case ok && number == n:
				return s, true, nil
			case ok:
				next = max(next, records[i].Seq+int64(n-number))
			}
		}
		if len(records) < stepsNear {
			return activities.Step{}, false, nil
		}
		seq = next
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
