package mcpserver

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
)

// blankStart begins every blank: what stands in next where the caller has to put an object. It is text, so that a copy
// that still has it is refused by the arguments' reader and never reaches the run: an empty object might be believed.
const blankStart = "<object"

// Blanks that do not depend on what the run waits for.
const (
	blankDefinition = "<object: the definition of this run>"
	blankPayload    = "<object: what the signal brings, {} if nothing; it is merged into the state>"
)

func isBlank(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasPrefix(s, blankStart) && strings.HasSuffix(s, ">")
}

// blankLeft says what is wrong with an argument that is a blank.
func blankLeft(blank string) string {
	return fmt.Sprintf("found the placeholder %q of next; replace it with that object", strings.TrimSpace(blank))
}

// blankResult is what has to become of an activity or a delegate.
func blankResult(p *view.Pending) string {
	switch {
	case p.OutputSchema != nil:
		return "<object that fits output_schema>"
	case p.Kind == machine.WaitDelegate:
		return "<object: the agent's result>"
	case p.NodeType == "tool_call":
		return "<object: the tool's result>"
	case p.NodeType == "llm_call":
		return "<object: the model's answer>"
	default:
		return "<object: the result, {} if there is none>"
	}
}

func blankAnswer(p *view.Pending) string {
	switch {
	case agentsteps.Approval(p.Show) != nil:
		return "<object: the person's decision>"
	case p.ResumeSchema == nil:
		return "<object: the person's answer>"
	}
	return "<object that fits resume_schema>"
}
