package agent

import (
	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
)

// CheckSteps checks that the recorded steps of an attempt follow from each other, if they are those of an agent; it is for
// graph.Options.CheckSteps. It needs no configuration: that is recorded.
func CheckSteps(a activities.RecordedAttempt) (at int, err error) {
	if !isAgents(a.Steps) {
		return 0, nil
	}
	return agentloop.Check(recorded(a.Steps), a.Completed, a.Output)
}

// CheckAnswer returns an error for an answer that fits the schema of the question, but cannot be used by the agent: a call without a decision,
// another digest, arguments that the tool does not take. It is for graph.Options.CheckAnswer, and needs no configuration either.
func CheckAnswer(a activities.RecordedAttempt, answer map[string]any) error {
	if !isAgents(a.Steps) {
		return nil
	}
	m, err := agentloop.Replay(recorded(a.Steps), false)
	if err != nil {
		return nil // whatever the answer is: the agent ends with this error when it goes on
	}
	return m.Check(answer)
}

// isAgents reports whether an agent has recorded the steps: some of them have fields that only an agent's have.
func isAgents(steps []activities.Step) bool {
	for _, s := range steps {
		member := map[string]string{agentloop.StepBegun: "configHash", agentloop.StepReply: "requestHash"}[s.Kind]
		if _, ok := s.Body[member]; ok && member != "" {
			return true
		}
	}
	return false
}
