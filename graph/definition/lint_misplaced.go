package definition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// Warnings about members that are written where nothing reads them, and where any member is allowed: the config of a step or
// llm_call, and metadata. They are not errors there, because a handler, a host or a person may read them.

const (
	besideConfig = "%s is a member of the node: write it beside config, not in it"
	inConfig     = "%s is a member of config: write it there"
	inRetry      = `%s belongs to retry, a member of the node: write "retry" beside config`
	inMetadata   = "%s belongs to metadata, a member of the node: write it there"
	attempts     = `to try again, write "retry": {"max_attempts": 3} beside config`
	tooLate      = `to bound an attempt, write "timeout": "30s" beside config`
	wholeOutput  = "the output of the node becomes part of the state as it is; choose from it in a set_state node, or in output_mapping of an end node"
	noHandler    = `to go on at another node after a failure, write "catch" beside config, an extension; ` + attempts
)

// misplacements are members that authors write into the config of a step or llm_call, with hints. A %s stands for the
// member.
var misplacements = map[string]string{
	"timeout": besideConfig, "retry": besideConfig, "metadata": besideConfig, "catch": besideConfig, "compensate": besideConfig,
	"timeout_ms": tooLate, "timeoutMs": tooLate, "timeout_seconds": tooLate, "deadline": tooLate,
	"retries": attempts, "max_retries": attempts, "retry_policy": attempts,
	"on_error": noHandler, "onError": noHandler, "fallback": noHandler,
	demoOutput: inMetadata, "prompt_templates": inMetadata, "argument_templates": inMetadata,
	"output": wholeOutput, "output_mapping": wholeOutput,
	"input_schema": "the input of a run is checked: write input_schema into the config of the start node",
	"next":         "nodes are connected by edges",
}

// misplaced warns of misplaced and misspelt members of the config of a step or llm_call.
func (x *config) misplaced(message string) {
	t := x.v.node.Type.Info()
	var known []string
	for _, m := range t.config.members {
		if !m.shape.deprecated {
			known = append(known, m.name)
		}
	}
	for _, m := range x.json.Members {
		hint := cmp.Or(t.misplaced[m.Name], misplacements[m.Name])
		if slices.ContainsFunc(retryShape.members, func(policy member) bool { return policy.name == m.Name }) {
			hint = inRetry
		}
		if hint == "" && !slices.Contains(known, m.Name) {
			hint = suggest.DidYouMean(m.Name, known)
		}
		if hint != "" {
			x.c.ignored(m, x.at, x.v, fmt.Sprintf(message, m.Name), strings.ReplaceAll(hint, "%s", m.Name))
		}
	}
}

// demoOutput is the field of metadata with the output of an activity in a demo and in tests.
const demoOutput = "demo_output"

// templatesOwner returns the only type whose nodes have a switch of this name in metadata, "" if it is not one.
func templatesOwner(name string) Type {
	for _, t := range nodeTypes {
		if t.templates == name {
			return t.Name
		}
	}
	return ""
}

// lintMetadata warns of members of an activity's metadata that belong beside it or to nodes of another type.
func (c *compiler) lintMetadata(v *vertex) {
	n := v.json.Get("metadata")
	if n == nil {
		return
	}
	own := v.node.Type.Info().templates
	for _, m := range n.Members {
		owner, hint := templatesOwner(m.Name), ""
		switch {
		case m.Name == "timeout", m.Name == "retry":
			hint = m.Name + " is a member of the node: write it beside metadata, not in it"
		case owner != "" && owner != v.node.Type:
			hint = "only " + string(owner) + " nodes have " + m.Name
		case owner == "" && m.Name != demoOutput:
			hint = suggest.DidYouMean(m.Name, []string{demoOutput, own})
		}
		if hint != "" {
			c.ignored(m, v.at.member("metadata"), v, fmt.Sprintf("nothing reads %s in the metadata of %s node", m.Name, withArticle(string(v.node.Type))), hint)
		}
	}
}
