package lint

import (
	"fmt"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// sdk is the protocol of agents that run inside the engine.
const sdk = "sdk"

// agents warns of delegations to agents inside the engine that it does not have, and of skills left to an agent that it does not have.
func (l *linter) agents() {
	if l.known == nil {
		return
	}
	for _, n := range l.program.Nodes {
		if n.Delegate == nil || n.Delegate.Protocol != sdk {
			continue
		}
		agent := n.Delegate.AgentID
		if !slices.Contains(l.known, agent) {
			l.warn(problem.DelegateAgentNotFound, nodePointer(n)+"/config/agent_id", n, fmt.Sprintf("there is no agent %q", clip(agent)), l.meant(agent, l.known))
		}
		if left, given := n.Metadata["skills"]; given && l.skills[agent] != nil {
			l.left(n, left)
		}
	}
}

// left warns of a list of skills in metadata that the agent does not have, so that the run would fail.
func (l *linter) left(n *definition.Node, skills any) {
	agent, pointer := n.Delegate.AgentID, nodePointer(n)+"/metadata/skills"
	names, ok := skills.([]any)
	for i, v := range names {
		name, text := v.(string)
		ok = ok && text
		if text && !slices.Contains(l.skills[agent], name) {
			l.warn(problem.AgentConfigInvalid, fmt.Sprintf("%s/%d", pointer, i), n, fmt.Sprintf("agent %q does not have the skill %q", clip(agent), clip(name)), l.meant(name, l.skills[agent]))
		}
	}
	if !ok {
		l.warn(problem.AgentConfigInvalid, pointer, n, "the skills are not a list of names", clip("there is "+problem.AndList(l.skills[agent])))
	}
}

// meant suggests the known name that was probably meant, or lists the known names.
func (l *linter) meant(name string, known []string) string {
	hint := ""
	if l.compared.take(len(known)) {
		hint = suggest.DidYouMean(name, known)
	}
	if hint == "" {
		hint = "there is " + problem.AndList(known)
		if len(known) == 0 {
			hint = "there is none"
		}
	}
	return clip(hint)
}
