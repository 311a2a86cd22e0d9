package agent

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// Config configures the agents.
type Config struct {
	// Models are the models, by the names that agents use.
	Models map[string]Model
	// Agents are served under their names (agent_id).
	Agents map[string]Agent
	// Hooks decide about calls and turns of all agents.
	Hooks Hooks
	// Mask returns a text without secrets; nil if there are no secrets. It is applied to all output of tools and models before it is recorded and
	// before a model reads it: texts, arguments, field names, errors, and text as it arrives. Masked values must be too long to be a word.
	Mask func(text string) string
	// Log gets an error each time that a model cannot be used until an operator acts: a rejected key, no credit, a model that
	// the provider does not have. nil logs nothing.
	Log *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Model is a model that agents ask.
type Model struct {
	// Chat asks it.
	Chat chat.Model
	// Model has the name and the price of the model; see agentloop.Model. Name is set by New.
	agentloop.Model
}

// Agent is one agent.
type Agent struct {
	// Config configures the agent; see agentloop.Config, whose Name, Models, Agents, AskPerson, Hooks and Compaction.Model are set by New.
	agentloop.Config
	// Models are asked in order; see agentloop.Config. It may be empty if only one model is configured.
	Models []string
	// SummaryModel sums up long conversations (agentloop.Compaction); "" is the model that is asked.
	SummaryModel string
	// Tools are listed once, when the agent starts.
	Tools []Toolset
	// Agents are those that this one may call, as tools agent__<name>.
	Agents []SubAgent
	// AskPerson offers the tool ask_person.
	AskPerson bool
}

// SubAgent is an agent that another may call. The gates of the caller do not hold for its tools.
type SubAgent struct {
	// Name is that in Config.Agents.
	Name string
	// Parallel lets it work beside other calls. Gate is Allow, Ask or Deny; "" means Allow.
	Parallel bool
	Gate     string
}

// resolve returns the configuration of an agent with its models and sub-agents. agents counts the configurations within the outermost one:
// a few agents that call each other can make very many.
func (c *Config) resolve(name string, above []string, agents *int) (agentloop.Config, error) {
	a, ok := c.Agents[name]
	if !ok {
		return agentloop.Config{}, invalid(strings.Join(above, "."), "there is no agent %q%s", name, meant(name, c.Agents))
	}
	path := append(slices.Clone(above), name)
	at := strings.Join(path, ".")
	if a.Hooks != (agentloop.Hooks{}) {
		return agentloop.Config{}, invalid(at, "hooks are functions: set agent.Config.Hooks instead of the agent's Hooks")
	}
	switch *agents++; {
	case len(path) > agentloop.MaxNesting:
		return agentloop.Config{}, invalid(path[0], "sub-agents are nested more than %d deep", agentloop.MaxNesting)
	case *agents > agentloop.MaxAgents:
		return agentloop.Config{}, invalid(path[0], "it has more than %d sub-agents, each counted once for every agent that calls it", agentloop.MaxAgents)
	}
	out := a.Config
	out.Name, out.Models, out.AskPerson = name, nil, a.AskPerson
	out.Hooks = agentloop.Hooks{BeforeTool: c.Hooks.BeforeTool != nil, AfterTurn: c.Hooks.AfterTurn != nil}
	models := a.Models
	if len(models) == 0 && len(c.Models) == 1 {
		models = slices.Collect(maps.Keys(c.Models))
	}
	for _, m := range models {
		model, err := c.model(at, m)
		if err != nil {
			return out, err
		}
		out.Models = append(out.Models, model)
	}
	out.Compaction.Model = nil
	if a.SummaryModel != "" {
		model, err := c.model(at, a.SummaryModel)
		if err != nil {
			return out, err
		}
		out.Compaction.Model = &model
	}
	out.Agents = nil
	for _, s := range a.Agents {
		if slices.Contains(path, s.Name) {
			return out, invalid(at, "agents call each other in a circle: %s", strings.Join(append(path, s.Name), " → "))
		}
		sub, err := c.resolve(s.Name, path, agents)
		if err != nil {
			return out, err
		}
		out.Agents = append(out.Agents, agentloop.Sub{Config: sub, Parallel: s.Parallel, Gate: s.Gate})
	}
	return out, nil
}

func (c *Config) model(at, name string) (agentloop.Model, error) {
	m, ok := c.Models[name]
	if !ok {
		return agentloop.Model{}, invalid(at, "there is no model %q%s", name, meant(name, c.Models))
	}
	m.Name = name
	return m.Model, nil
}

func invalid(at, format string, args ...any) error {
	e := problem.New(problem.AgentConfigInvalid, format, args...)
	if at != "" {
		e.Message = "agent " + at + ": " + e.Message
	}
	return e
}

func meant[T any](name string, of map[string]T) string {
	if s := suggest.DidYouMean(name, slices.Sorted(maps.Keys(of))); s != "" {
		return "; " + s
	}
	return ""
}
