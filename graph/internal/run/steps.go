package run

import (
	"context"
	"slices"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// stepPage is the number of records read at a time, piecePage where there are pieces among them.
const (
	stepPage  = 256
	piecePage = 8
)

// Records is the part of a history.Store that holds the records of runs.
type Records interface {
	Read(ctx context.Context, executionID string, fromSeq int64, limit int) ([]history.Record, error)
}

// RecordedSteps returns the journal entries of an attempt, the oldest first, pieces without their bodies, or, unless n is 0, only the
// n-th, counted from 1. first is the seq of the first entry.
func RecordedSteps(ctx context.Context, store Records, executionID string, of *machine.EffectBase, first int64, n int) ([]activities.Step, error) {
	if n > 0 {
		return step(ctx, store, executionID, of, first, n)
	}
	var steps []activities.Step
	page := piecePage
	for {
		records, err := store.Read(ctx, executionID, first, page)
		if err != nil {
			return nil, err
		}
		last := len(records) < page
		page = min(2*page, stepPage)
		for i := range records {
			s, _, ok := stepOf(&records[i], of)
			if !ok {
				continue
			}
			if s.Kind == activities.StepPiece {
				s.Body, page = nil, piecePage
			}
			steps = append(steps, s)
		}
		if last {
			return steps, nil
		}
		first = records[len(records)-1].Seq + 1
	}
}

// stepOf returns the journal entry of an attempt in a record, and its number.
func stepOf(r *history.Record, of *machine.EffectBase) (activities.Step, int, bool) {
	p := &r.Payload
	if p.NodeID != of.NodeID || max(p.Visit, 1) != of.Visit || max(p.Attempt, 1) != of.Attempt {
		return activities.Step{}, 0, false
	}
	s, n, ok := machine.StepOf(r)
	return activities.Step{Key: s.Key, Kind: s.Kind, Body: s.Body, Totals: s.Totals, At: r.CreatedAt}, n, ok
}

// stepsNear is the number of records read at a time in search of one entry.
const stepsNear = 4

// step returns the n-th journal entry of an attempt. Each entry is a record, so the n-th is at least as many records behind an entry as
// their numbers differ: in a run without other activity, the first read finds it.
func step(ctx context.Context, store Records, executionID string, of *machine.EffectBase, first int64, n int) ([]activities.Step, error) {
	seq := max(first, 1) + int64(n) - 1
	for {
		records, err := store.Read(ctx, executionID, seq, stepsNear)
		if err != nil {
			return nil, err
		}
		next := seq + stepsNear
		for i := range records {
			s, number, ok := stepOf(&records[i], of)
			switch {
			case ok && number == n:
				return []activities.Step{s}, nil
			case ok:
				next = max(next, records[i].Seq+int64(n-number))
			}
		}
		if len(records) < stepsNear {
			return nil, nil
		}
		seq = next
	}
}

// HasRecorded reports whether entries are the last recorded ones of their attempt.
func HasRecorded(ctx context.Context, store Records, executionID string, of *machine.EffectBase, s *machine.StepsRecorded) bool {
	all, err := RecordedSteps(ctx, store, executionID, of, 1, 0)
	return err == nil && len(all) == s.Index+len(s.Steps) &&
		slices.EqualFunc(all[s.Index:], s.Steps, func(r activities.Step, s machine.Step) bool { return r.Key == s.Key && r.Kind == s.Kind })
}

// maxJournals bounds the attempts whose journals are read, maxBack the records read to find the newest entry with progress.
const (
	maxJournals = 32
	maxBack     = 8
)

// Journals adds data from journal entries to the waits of a run: the content shown with executors' questions, and the first and newest
// entry of the first attempts.
func Journals(ctx context.Context, store Records, pending []view.Pending) error {
	looked := 0
	for i := range pending {
		p := &pending[i]
		if p.QuestionSeq > 0 {
			r, err := recordAt(ctx, store, p.ExecutionID, p.QuestionSeq)
			if err != nil {
				return err
			}
			if q := machine.QuestionOf(r); q != nil && len(q.Body) > 0 {
				p.Show = q.Body
			}
		}
		if p.FirstStepSeq == 0 || looked == maxJournals {
			continue
		}
		looked++
		if err := ends(ctx, store, p); err != nil {
			return err
		}
	}
	return nil
}

// ends reads the first and the newest entry of an attempt.
func ends(ctx context.Context, store Records, p *view.Pending) error {
	first, err := recordAt(ctx, store, p.ExecutionID, p.FirstStepSeq)
	if err != nil {
		return err
	}
	p.FirstStep = first.Payload.AgentStep
	if p.ReconfiguredSeq > 0 {
		r, err := recordAt(ctx, store, p.ExecutionID, p.ReconfiguredSeq)
		if err != nil {
			return err
		}
		p.Reconfigured = r.Payload.AgentStep
	}
	for seq := p.LastStepSeq; seq >= p.FirstStepSeq && seq > p.LastStepSeq-maxBack; seq-- {
		r := first
		if seq > p.FirstStepSeq {
			if r, err = recordAt(ctx, store, p.ExecutionID, seq); err != nil {
				return err
			}
		}
		if _, kind, _, ok := r.Payload.Step(); !ok || r.Payload.NodeID != p.NodeID || max(r.Payload.Visit, 1) != p.Visit ||
			kind == machine.StepAnswer || kind == machine.StepRest || kind == machine.StepWoken {
			continue
		}
		p.NewestStep = r.Payload.AgentStep
		return nil
	}
	return nil
}

// recordAt reads a record. If it is gone, only its seq is set.
func recordAt(ctx context.Context, store Records, executionID string, seq int64) (*history.Record, error) {
	records, err := store.Read(ctx, executionID, seq, 1)
	if err != nil || len(records) == 0 {
		return &history.Record{Seq: seq}, err
	}
	return &records[0], nil
}
