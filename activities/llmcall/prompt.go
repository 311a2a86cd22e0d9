package llmcall

import (
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Templates is the member of a node's metadata that, when true, turns its prompts into templates. Without it they are
// sent as written, which is the protocol's rule (spec: activities, 5.2).
const Templates = "prompt_templates"

// noPrompt is the user message of a node without a prompt in a workflow without state.
const noPrompt = "Please do what the system instructions say."

// messages makes the conversation: the system prompt if there is one, then user_prompt, else prompt, else the state as
// JSON (spec: activities, 5.2). isState says that the user message is the state.
func (e *Executor) messages(req activities.Request) (ms []openai.ChatCompletionMessage, isState bool, err error) {
	p := prompter{req: req, now: req.Time(e.config.Now)}
	p.templates, _ = req.Metadata[Templates].(bool)
	system, _, err := p.read("system_prompt")
	if err != nil {
		return nil, false, err
	}
	user, given, err := p.read("user_prompt")
	if err == nil && !given {
		user, given, err = p.read("prompt")
	}
	if err != nil {
		return nil, false, err
	}
	if !given {
		user = noPrompt
		if state := p.stateOf(); len(state) > 0 {
			user, isState = string(jsonvalue.Canonical(state)), true
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
		ms = append(ms, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: system})
	}
	return append(ms, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: user}), isState, nil
}

// prompter reads the prompts of one request.
type prompter struct {
	req       activities.Request
	templates bool
	now       time.Time
	state     map[string]any
	budget    expr.Budget // of all prompts
}

// stateOf asks for the state once.
func (p *prompter) stateOf() map[string]any {
	if p.state == nil && p.req.State != nil {
		p.state = p.req.State()
	}
	return p.state
}

// read returns a prompt; given is false if the config has none of that name.
func (p *prompter) read(name string) (text string, given bool, err error) {
	v, given := p.req.Config[name]
	if !given {
		return "", false, nil
	}
	if text, ok := v.(string); ok && !p.templates {
		return text, true, nil
	}
	if p.templates {
		var known bool
		if text, known, err = fill(v, p.stateOf, expr.Env{Now: p.now, Budget: &p.budget}); known {
			if err != nil {
				failure := activities.Fail(problem.LLMConfigInvalid, "the %s of llm_call %q cannot be filled in", name, p.req.NodeID)
				failure.Err = err
				return "", true, failure
			}
			return text, true, nil
		}
	}
	hint := "a text"
	if p.templates {
		hint = `a text or {"jq": "<program>"}`
	}
	return "", true, activities.Fail(problem.LLMConfigInvalid, "the %s of llm_call %q is not %s", name, p.req.NodeID, hint)
}
