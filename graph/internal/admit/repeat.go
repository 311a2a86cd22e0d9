package admit

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// A caller that lost the response cannot know whether its call was recorded, so it calls again. A rejected submit, resume or signal is
// therefore searched for in the history. If it was recorded before, the caller gets the current state of the run.

// Repeat is the kind of result of a search.
type Repeat int

const (
	// NotRepeated: the call was not recorded before.
	NotRepeated Repeat = iota
	// Repeated: the call was recorded before.
	Repeated
	// KeyReused: its key was used with other content.
	KeyReused
)

// MayRepeat reports whether a rejection may be that of a repeated call.
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

// RepeatedSubmit searches for a submitted outcome in the history. A value serves one search.
type RepeatedSubmit struct {
	Submitted
	// Outcome is the submitted outcome.
	Outcome machine.Outcome

	key   attemptKey
	found Found
}

// look compares a record, and reports whether the search has ended.
func (s *RepeatedSubmit) look(rec *history.Record) (done bool) {
	p := &rec.Payload
	if p.NodeID != s.NodeID || rec.Name != history.ActivityCompleted && rec.Name != history.ActivityFailed {
		return false
	}
	switch {
	case s.IdempotencyKey == "": // only the last outcome of this node and branch
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

// sameObject compares two objects; nil counts as empty.
func sameObject(a, b map[string]any) bool {
	return len(a) == 0 && len(b) == 0 || jsonvalue.Equal(a, b)
}

// RepeatedResume searches for a resume by the interrupt's id; without an id, two answers look alike. A value serves one search.
type RepeatedResume struct {
	InterruptID string
	Payload     map[string]any

	key      attemptKey
	question bool
	found    Found
}

// runOf returns the run that the interrupt's id names; ok is false for another run and for an invalid id.
func (s *RepeatedResume) runOf(executionID string) (id string, ok bool) {
	// An agent's question, "<node>#<visit>.<attempt>/<number>", is recorded with its id.
	hash := strings.LastIndexByte(s.InterruptID, '#') + 1
	raised, _, question := strings.Cut(s.InterruptID[hash:], "/")
	s.question = question
	s.key, ok = parseKey(executionID, s.InterruptID[:hash]+raised, "")
	return s.key.executionID, ok
}

// look compares a record, and reports whether the search has ended.
func (s *RepeatedResume) look(rec *history.Record) (done bool) {
	p := &rec.Payload
	if rec.Name != history.InterruptResumed || p.NodeID != s.key.nodeID || max(p.Visit, 1) != s.key.visit ||
		s.question && p.IdempotencyKey != s.InterruptID {
		return false
	}
	s.found = Found{Repeat: repeatIf(sameObject(p.SignalPayload, s.Payload), KeyReused), Record: rec}
	return true
}

// RepeatedSignal searches for a signal by its key, in a run and the subworkflows below it. A value serves one search.
type RepeatedSignal struct {
	Name, IdempotencyKey string
	Payload              map[string]any

	children []string // started by the records so far
	found    Found
}

// look compares a record of a run, and reports whether the search has ended.
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
