package llmcall

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Templates is the field of a node's metadata that makes its prompts templates. Otherwise they are sent as written, which is the protocol's
// rule (spec: activities, 5.2).
const Templates = definition.PromptTemplates

// noPrompt is the user message of a node without a prompt in a workflow without state.
const noPrompt = "Please do what the system instructions say."

// messages returns the conversation: the system prompt if there is one, then user_prompt, else prompt, else the state as JSON (spec:
// activities, 5.2). isState is set if the user message is the state.
func (e *Executor) messages(req activities.Request) (ms []chat.Message, isState bool, err error) {
	state := func() map[string]any {
		if req.State == nil {
			return nil
		}
		return req.State()
	}
	node := definition.Templates{ID: req.NodeID, Type: "llm_call", Config: req.Config, Metadata: req.Metadata}
	filled, err := node.Values(state, expr.Env{Now: req.Time(e.config.Now)})
	if err != nil {
		return nil, false, activities.Pointless(err)
	}
	config := definition.OverlayConfig(req.Config, filled)
	system, _, err := text(config, "system_prompt", req.NodeID)
	if err != nil {
		return nil, false, err
	}
	user, given, err := text(config, "user_prompt", req.NodeID)
	if err == nil && !given {
		user, given, err = text(config, "prompt", req.NodeID)
	}
	if err != nil {
		return nil, false, err
	}
	if !given {
		user = noPrompt
		if all := state(); len(all) > 0 {
			user, isState = string(jsonvalue.Canonical(all)), true
		}
	}
	if strings.TrimSpace(user) == "" {
		return nil, false, activities.Fail(problem.LLMConfigInvalid, "the prompt of llm_call %q is empty", req.NodeID)
	}
	if size := len(system) + len(user); size > e.config.MaxPromptBytes {
		return nil, false, activities.Fail(problem.LLMConfigInvalid, "the prompt of llm_call %q has %d bytes, above the limit of %d",
			req.NodeID, size, e.config.MaxPromptBytes)
	}
	if system != "" {
		ms = append(ms, chat.Message{Role: chat.System, Text: system})
	}
	return append(ms, chat.Message{Role: chat.User, Text: user}), isState, nil
}

// text returns a prompt; given is false if the config has no prompt of that name.
func text(config map[string]any, name, nodeID string) (prompt string, given bool, err error) {
	v, given := config[name]
	if !given {
		return "", false, nil
	}
	prompt, ok := v.(string)
	if !ok {
		return "", true, activities.Fail(problem.LLMConfigInvalid, "the %s of llm_call %q is not a text", name, nodeID)
	}
	return prompt, true, nil
}
