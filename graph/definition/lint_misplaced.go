package definition

import (
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

// misplacements are members that authors write into the config of a step or llm_call, and what to write instead. A %s stands for the
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

// misplacedIn adds to misplacements what depends on the node's type.
var misplacedIn = map[Type]map[string]string{
	Step: {
		"output_schema": "no output of a step is checked: let the handler check it, or write output_schema into the config of an end node, for the result",
		"input":         "a handler gets the whole state as its input; prepare it in a set_state node",
		"input_mapping": "a handler gets the whole state as its input; prepare it in a set_state node",
	},
	LLMCall: {
		"input":         `write what the model is to see into the prompt, as "${ .name }" with prompt_templates in metadata`,
		"input_mapping": `write what the model is to see into the prompt, as "${ .name }" with prompt_templates in metadata`,
		"schema":        `write "output_schema"`, "response_format": `write "output_schema"`,
	},
}

// readOf are the members of a config that something here reads; others are for hosts and handlers.
var readOf = map[Type][]string{
	Step:    {"handler"},
	LLMCall: {"agent", "model", "system_prompt", "user_prompt", "prompt", "output_schema", "stream", "temperature", "top_p", "max_tokens", "seed", "stop"},
}

// misplaced warns of misplaced and misspelt members of the config of a step or llm_call.
func (x *config) misplaced(message string) {
	for _, m := range x.json.Members {
		hint := misplacements[m.Name]
		if of := misplacedIn[x.v.node.Type][m.Name]; of != "" {
			hint = of
		}
		if slices.ContainsFunc(retryShape.members, func(policy member) bool { return policy.name == m.Name }) {
			hint = inRetry
		}
		if known := readOf[x.v.node.Type]; hint == "" && !slices.Contains(known, m.Name) {
			hint = suggest.DidYouMean(m.Name, known)
		}
		if hint != "" {
			x.c.ignored(m, x.at, x.v, fmt.Sprintf(message, m.Name), strings.ReplaceAll(hint, "%s", m.Name))
		}
	}
}

// templatesOf are the switches in metadata, with the only type of node that has each; switchOf has them by type.
var (
	templatesOf = map[string]Type{"prompt_templates": LLMCall, "argument_templates": ToolCall}
	switchOf    = map[Type]string{LLMCall: "prompt_templates", ToolCall: "argument_templates"}
)

// demoOutput is the member of metadata that holds what an activity answers in a demo and in tests.
const demoOutput = "demo_output"

// lintMetadata warns of members of an activity's metadata that belong beside it or to nodes of another type.
func (c *compiler) lintMetadata(v *vertex) {
	n := v.json.Get("metadata")
	if n == nil {
		return
	}
	for _, m := range n.Members {
		owner, hint := templatesOf[m.Name], ""
		switch {
		case m.Name == "timeout", m.Name == "retry":
			hint = m.Name + " is a member of the node: write it beside metadata, not in it"
		case owner != "" && owner != v.node.Type:
			hint = "only " + string(owner) + " nodes have " + m.Name
		case owner == "" && m.Name != demoOutput:
			hint = suggest.DidYouMean(m.Name, []string{demoOutput, switchOf[v.node.Type]})
		}
		if hint != "" {
			c.ignored(m, v.at.member("metadata"), v, fmt.Sprintf("nothing reads %s in the metadata of %s node", m.Name, withArticle(string(v.node.Type))), hint)
		}
	}
}
