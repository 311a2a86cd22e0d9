package lint

import (
	"fmt"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// sdk is the protocol of agents that run inside the engine.
const sdk = "sdk"

// agents warns of delegations to agents inside the engine that it does not have.
func (l *linter) agents() {
	if l.known == nil {
		return
	}
	for _, n := range l.program.Nodes {
		if n.Delegate == nil || n.Delegate.Protocol != sdk || slices.Contains(l.known, n.Delegate.AgentID) {
			continue
		}
		hint := ""
		if l.compared.take(len(l.known)) {
			hint = suggest.DidYouMean(n.Delegate.AgentID, l.known)
		}
		if hint == "" {
			hint = "there is " + problem.AndList(l.known)
			if len(l.known) == 0 {
				hint = "there is none"
			}
		}
		l.warn(problem.DelegateAgentNotFound, nodePointer(n)+"/config/agent_id", n, fmt.Sprintf("there is no agent %q", clip(n.Delegate.AgentID)), clip(hint))
	}
}
