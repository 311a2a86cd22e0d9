package history

import "github.com/workflows-engine/workflows-engine/graph/problem"

// The fields that identify a journal entry; package machine writes them.
const (
	stepKey    = "key"
	stepKind   = "kind"
	stepNumber = "n"
	// stepExpired marks the default answer of a question that expired without an answer.
	stepExpired = "expired"
)

// AnswerExpired reports whether the answer is the default answer of an expired question.
func (p *Payload) AnswerExpired() bool { return p.AgentStep[stepExpired] == true }

// Step returns the journal entry that a record holds: its key, its kind, and its number in the attempt, from 1. ok is false for a record
// without an entry. All three may be missing from a payload that was read only in outline.
func (p *Payload) Step() (key, kind string, n int, ok bool) {
	if p.AgentStep == nil {
		return "", "", 0, false
	}
	key, _ = p.AgentStep[stepKey].(string)
	kind, _ = p.AgentStep[stepKind].(string)
	number, _ := p.AgentStep[stepNumber].(float64)
	return key, kind, int(number), true
}

// stepsOf identifies an attempt with journal entries.
type stepsOf struct {
	node           string
	visit, attempt int
}

// step checks that the journal entries of an attempt are numbered without gaps and duplicates.
func (a *Audit) step(r *Record) {
	p := &r.Payload
	_, _, n, _ := p.Step()
	of := stepsOf{p.NodeID, max(p.Visit, 1), max(p.Attempt, 1)}
	if want := a.steps[of] + 1; n != want {
		a.note(r.Seq, problem.AgentStepsGap, hintReport, "expected step %d of attempt %d at %q, found step %d", want, of.attempt, of.node, n)
	}
	a.steps[of] = max(a.steps[of], n)
}
