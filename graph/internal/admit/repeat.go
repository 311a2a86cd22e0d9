package admit

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// A caller that has lost the answer cannot know whether its call was taken, so it calls again. A submit, resume or signal that
// is refused is therefore looked for in the history: if it was taken before, it is answered with where the run stands now.

// Repeat is what was found when a call was looked for in the history.
type Repeat int

const (
	// NotRepeated: it was not taken before.
	NotRepeated Repeat = iota
	// Repeated: it was taken before.
	Repeated
	// KeyReused: its key was used for something else.
	KeyReused
)

// MayRepeat tells refusals that a repeated call may meet from others.
func MayRepeat(err error) bool {
	p, ok := problem.As(err)
	if !ok {
		return false
	}
	switch p.Code {
	case problem.SubmitNotAwaiting, problem.SubmitNodeMismatch, problem.SubmitParallelMismatch, problem.InvalidResumePayload,
		problem.SignalNotAwaiting, problem.SignalNameMismatch, problem.SignalValidationError:
		return true
	default:
		return false
	}
}

func repeatIf(same bool, otherwise Repeat) Repeat {
	if same {
		return Repeated
	}
	return otherwise
}

// RepeatedSubmit looks for a submitted outcome in the history. Each value serves one search.
type RepeatedSubmit struct {
	Submitted
	// Outcome is what was submitted.
	Outcome machine.Outcome

	key   attemptKey
	found Found
}

// look compares a record, and reports whether the search is over.
func (s *RepeatedSubmit) look(rec *history.Record) (done bool) {
	p := &rec.Payload
	if p.NodeID != s.NodeID || rec.Name != history.ActivityCompleted && rec.Name != history.ActivityFailed {
		return false
	}
	switch {
	case s.IdempotencyKey == "": // only what was recorded last for this node and branch
		if p.Span != nil && !sameSpan(p.Span, s.Span) {
			return false
		}
		s.found = Found{Repeat: repeatIf(s.same(rec), NotRepeated), Record: rec}
	case max(p.Visit, 1) != s.key.visit || p.Attempt > 0 && s.key.attempt > 0 && p.Attempt != s.key.attempt:
		return false
	case p.IdempotencyKey == s.IdempotencyKey:
		s.found = Found{Repeat: repeatIf(s.same(rec), KeyReused), Record: rec}
	case p.IdempotencyKey == "" && s.same(rec): // sent without the key at first
		s.found = Found{Repeat: Repeated, Record: rec}
	default:
		if p.IdempotencyKey == "" && s.found.Record == nil {
			s.found.Record = rec
		}
		return false
	}
	return true
}

// same compares the submitted outcome with a recorded one.
func (s *RepeatedSubmit) same(rec *history.Record) bool {
	o, p := s.Outcome, &rec.Payload
	if rec.Name == history.ActivityFailed {
		renamed := o.Code == "LLM_OUTPUT_VALIDATION_FAILED" && p.Code == string(problem.OutputSchemaViolation)
		return !o.OK && p.Error == o.Error && (p.Code == o.Code || renamed)
	}
	out, ok := o.Output.(map[string]any)
	if !o.OK || !ok {
		return false
	}
	recorded, _ := p.Result.Value.(map[string]any)
	if p.Correlation == "" {
		return sameObject(recorded, out)
	}
	plain := jsonvalue.CloneMap(out)
	delete(plain, "delegateCorrelationId")
	delete(plain, "externalTaskId")
	return sameObject(recorded, plain)
}

// sameObject compares two objects, of which nil counts as empty.
func sameObject(a, b map[string]any) bool {
	return len(a) == 0 && len(b) == 0 || jsonvalue.Equal(a, b)
}

// RepeatedResume looks for a resume by the interrupt's id; without one it cannot be distinguished from another answer. Each value
// serves one search.
type RepeatedResume struct {
	InterruptID string
	Payload     map[string]any

	key      attemptKey
	question bool
	found    Found
}

// runOf returns the run that the interrupt's id names; ok is false if that is another run's, or no id.
func (s *RepeatedResume) runOf(executionID string) (id string, ok bool) {
	// The question of an agent, "<node>#<visit>.<attempt>/<number>", is recorded with its id.
	hash := strings.LastIndexByte(s.InterruptID, '#') + 1
	raised, _, question := strings.Cut(s.InterruptID[hash:], "/")
	s.question = question
	s.key, ok = parseKey(executionID, s.InterruptID[:hash]+raised, "")
	return s.key.executionID, ok
}

// look compares a record, and reports whether the search is over.
func (s *RepeatedResume) look(rec *history.Record) (done bool) {
	p := &rec.Payload
	if rec.Name != history.InterruptResumed || p.NodeID != s.key.nodeID || max(p.Visit, 1) != s.key.visit ||
		s.question && p.IdempotencyKey != s.InterruptID {
		return false
	}
	s.found = Found{Repeat: repeatIf(sameObject(p.SignalPayload, s.Payload), KeyReused), Record: rec}
	return true
}

// RepeatedSignal looks for a signal by its key, in a run and in the subworkflows below it. Each value serves one search.
type RepeatedSignal struct {
	Name, IdempotencyKey string
	Payload              map[string]any

	children []string // that the records looked at have started
	found    Found
}

// look compares a record of the run with the id, and reports whether the search is over.
func (s *RepeatedSignal) look(executionID string, rec *history.Record) (done bool) {
	p := &rec.Payload
	if rec.Name == history.SubworkflowStarted && history.Descends(p.ChildExecutionID, executionID) {
		s.children = append(s.children, p.ChildExecutionID)
	}
	switch {
	case rec.Name != history.SignalReceived && rec.Name != history.SignalKept:
		return false
	case p.IdempotencyKey == s.IdempotencyKey:
		s.found = Found{Repeat: repeatIf(p.SignalName == s.Name && sameObject(p.SignalPayload, s.Payload), KeyReused), Record: rec}
		return true
	case p.SignalName == s.Name && s.found.Record == nil:
		s.found.Record = rec
	}
	return false
}
