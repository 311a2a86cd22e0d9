package history

import "github.com/workflows-engine/workflows-engine/graph/problem"

// The members of a step that say which one it is; package machine writes them.
const (
	stepKey    = "key"
	stepKind   = "kind"
	stepNumber = "n"
	// stepExpired says that nobody has answered the question: what was recorded as its answer is what goes without one.
	stepExpired = "expired"
)

// AnswerExpired reports whether the answer to a question is what goes without one, since its time was over.
func (p *Payload) AnswerExpired() bool { return p.AgentStep[stepExpired] == true }

// Step says which step of an attempt a record holds: its key, what has happened, and its number in the attempt, from 1 on; ok is false if
// the record holds none. A payload of which only the outline was read may lack all three.
func (p *Payload) Step() (key, kind string, n int, ok bool) {
	if p.AgentStep == nil {
		return "", "", 0, false
	}
	key, _ = p.AgentStep[stepKey].(string)
	kind, _ = p.AgentStep[stepKind].(string)
	number, _ := p.AgentStep[stepNumber].(float64)
	return key, kind, int(number), true
}

// stepsOf identifies an attempt that has steps.
type stepsOf struct {
	node           string
	visit, attempt int
}

// step checks that the steps of an attempt are counted without gaps, and none twice.
func (a *Audit) step(r *Record) {
	p := &r.Payload
	_, _, n, _ := p.Step()
	of := stepsOf{p.NodeID, max(p.Visit, 1), max(p.Attempt, 1)}
	if want := a.steps[of] + 1; n != want {
		a.note(r.Seq, problem.AgentStepsGap, hintReport, "expected step %d of attempt %d at %q, found step %d", want, of.attempt, of.node, n)
	}
	a.steps[of] = max(a.steps[of], n)
}
