package llmcall

import (
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// agentField is the field of a node's config that names an agent.
const agentField = "agent"

// NamesAgent returns the agent that the config of an llm_call names. named reports whether the field is present: an agent then performs the
// node. The name is "" if the field is not a string.
func NamesAgent(config map[string]any) (name string, named bool) {
	v, named := config[agentField]
	name, _ = v.(string)
	return strings.TrimSpace(name), named
}

// noAgents returns the failure of a node that names an agent. The model alone could not do the agent's work.
func noAgents(req activities.Request) *activities.Failure {
	name, _ := NamesAgent(req.Config)
	failure := activities.Fail(problem.DelegateAgentNotFound, "llm_call %q names agent %q, but this process has no agents", req.NodeID, name)
	failure.Retryable = activities.RetryPointless
	return failure
}

// AgentCall holds the settings of an llm_call node that replace its agent's settings. Zero fields keep the agent's.
type AgentCall struct {
	Agent string
	// System is the system_prompt. Task is the user_prompt or prompt, else the state as JSON.
	System, Task      string
	Model             string
	Temperature, TopP *float64
	MaxTokens         int
	Seed              *int
	Stop              []string
	Stream            *bool
	// Schema is the output_schema, which has been compiled without error.
	Schema map[string]any
}

// ReadAgentCall reads a node that names an agent, by the rules for other llm_call nodes. now is the clock; nil means time.Now. The error is an
// *activities.Failure with code LLM_CONFIG_INVALID.
func ReadAgentCall(req activities.Request, now func() time.Time) (AgentCall, error) {
	if now == nil {
		now = time.Now
	}
	e := &Executor{config: Config{Now: now, MaxPromptBytes: DefaultMaxPromptBytes}}
	n, err := e.readNode(req)
	if err != nil {
		return AgentCall{}, err
	}
	if n.agent == "" {
		return AgentCall{}, activities.Fail(problem.LLMConfigInvalid, "llm_call %q must name an agent", req.NodeID)
	}
	messages, _, err := e.messages(req)
	if err != nil {
		return AgentCall{}, err
	}
	c := AgentCall{
		Agent: n.agent, Model: n.model, Temperature: n.temperature, TopP: n.topP, MaxTokens: n.maxTokens, Seed: n.seed, Stop: n.stop,
		Task: messages[len(messages)-1].Text,
	}
	if first := messages[0]; first.Role == chat.System {
		c.System = first.Text
	}
	if _, given := req.Config["stream"]; given {
		c.Stream = &n.stream
	}
	c.Schema, _ = req.Config["output_schema"].(map[string]any)
	return c, nil
}
