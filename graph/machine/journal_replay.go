package machine

import (
	"slices"

	"github.com/workflows-engine/workflows-engine/history"
)

// isStepRecord reports whether a record is a step of an attempt.
func isStepRecord(rec *history.Record) bool { return rec.Payload.AgentStep != nil }

// StepOf returns the step in a record, and its number in the attempt; ok is false if the record has no step.
func StepOf(rec *history.Record) (s Step, n int, ok bool) {
	step := rec.Payload.AgentStep
	if step == nil {
		return Step{}, 0, false
	}
	number, _ := step[stepNumber].(float64)
	s.Key, _ = step[stepKey].(string)
	s.Kind, _ = step[stepKind].(string)
	s.Totals, _ = step[stepTotals].(map[string]any)
	s.Body = make(map[string]any, len(step))
	for name, v := range step {
		if name != stepKey && name != stepKind && name != stepNumber && name != stepTotals {
			s.Body[name] = v
		}
	}
	if s.Kind == StepAnswer {
		s.Body[StepPayload] = object(rec.Payload.SignalPayload)
	}
	return s, int(number), true
}

// resolveStep returns the next recorded step of an attempt, if it came before the end of the attempt.
func (r *recorded) resolveStep(t *token, f *visitFacts) (resolution, bool) {
	w := t.wait
	requested := !w.Queued || w.again || w.Journal != nil && w.Journal.Idle
	if !w.counts() || !requested || f.usedSteps == len(f.steps) {
		return resolution{}, false
	}
	rec := &f.steps[f.usedSteps]
	if f.used < len(f.failed) && f.failed[f.used].Seq < rec.Seq {
		return resolution{}, false
	}
	s, _, _ := StepOf(rec)
	p := &rec.Payload
	answered := s.Kind == StepAnswer
	if answered != w.executorAsks() || (s.Kind == StepWoken) != (w.Journal != nil && (w.Journal.Idle || !w.Journal.Due.IsZero())) {
		return resolution{}, false
	}
	return resolution{seq: rec.Seq, at: rec.CreatedAt, apply: func(m *Machine) {
		f.usedSteps++
		switch s.Kind {
		case StepQuestion:
			m.ask(t, questionOf(rec, &s), rec.Seq)
		case StepAnswer:
			m.takeStepAnswer(t, object(p.SignalPayload), s.Body[stepExpired] == true, rec.Seq)
		case StepRest:
			m.restUntil(t, p.DueAt, rec.Seq)
		case StepWoken:
			m.wake(t, rec.Seq)
		default:
			m.writeStep(t, &s, rec.Seq)
		}
	}}, true
}

// QuestionOf returns the question in a record, nil if absent.
func QuestionOf(rec *history.Record) *Question {
	s, _, ok := StepOf(rec)
	if !ok || s.Kind != StepQuestion {
		return nil
	}
	return questionOf(rec, &s)
}

func questionOf(rec *history.Record, s *Step) *Question {
	q := &Question{Key: s.Key, Prompt: rec.Payload.Prompt, Seq: rec.Seq, Body: map[string]any{}}
	for name, v := range s.Body {
		switch name {
		case stepSchema:
			q.Schema, _ = v.(map[string]any)
		case stepOtherwise:
			q.Otherwise, _ = v.(map[string]any)
		case stepExpires:
			text, _ := v.(string)
			q.Expires, _ = history.ParseTimestamp(text)
		default:
			if !slices.Contains(reservedFields, name) {
				q.Body[name] = v
			}
		}
	}
	return q
}
