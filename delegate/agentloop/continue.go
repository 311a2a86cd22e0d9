package agentloop

import (
	"errors"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
)

// Steps of an attempt that goes on where another one has failed (package agentsteps).
const (
	StepContinued = agentsteps.Continued
	StepAnswered  = agentsteps.Answered
)

// continued goes on after the failure of an attempt. A model whose answer did not count is told why.
func (m *Machine) continued(b body) error {
	a, code := m.root, b.text("code")
	if a.phase == listed {
		return errors.New("the agent has not begun")
	}
	if !agentsteps.Told(code) {
		return nil
	}
	if m.done != nil {
		if m.done.Failure == nil {
			return errors.New("the agent has ended before")
		}
		if a.exceeded(false) != "" || a.finishing != "" {
			return nil // it ends by its budget
		}
		m.done, a.failure = nil, nil
		a.phase, a.calls = ready, nil
	}
	a.errorsInRow, a.same, a.lastCall = 0, 0, ""
	a.repairs, a.cuts, a.empties, a.part = 0, 0, 0, ""
	a.raised, a.answering = false, a.finishing != ""
	switch a.phase {
	case asking, pausing:
		if a.room.req != nil {
			return nil
		}
		a.again, a.req = true, nil
	case ready:
	default:
		return nil // the results of its calls come first, and say what there is to say
	}
	a.phase = ready
	a.talk.say(chat.User, "[engine] Your last answer did not count: "+problem.Excerpt(b.text("message"), problem.MaxText)+". Go on from here, and do it another way.")
	m.settle()
	return nil
}
