package agent

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Agents performs delegations of protocol sdk to configured agents.
type Agents struct {
	config Config
	// resolved are the agents by name.
	resolved map[string]agentloop.Config
	now      func() time.Time
	inWork   inWork

	mu sync.Mutex
	// owners are the toolsets of the tools of each agent, as they were listed last.
	owners map[string]map[string]owned
}

// New checks a configuration. Errors have the code AGENT_CONFIG_INVALID and name the agent.
func New(c Config) (*Agents, error) {
	a := &Agents{config: c, resolved: map[string]agentloop.Config{}, now: c.Now, owners: map[string]map[string]owned{}}
	if a.now == nil {
		a.now = time.Now
	}
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		resolved, err := c.resolve(name, nil, new(int))
		if err != nil {
			return nil, err
		}
		resolved, failure := agentloop.Resolve(resolved)
		if failure != nil {
			return nil, problem.New(failure.Code, "%s", failure.Message)
		}
		a.resolved[name] = resolved
	}
	return a, nil
}

// Has reports whether an agent is configured.
func (a *Agents) Has(agentID string) bool {
	_, ok := a.resolved[agentID]
	return ok
}

// Names returns the names of the configured agents, sorted.
func (a *Agents) Names() []string { return slices.Sorted(maps.Keys(a.resolved)) }

// Capabilities returns Work for the configured agents.
func (a *Agents) Capabilities(n activities.Node) activities.Capabilities {
	switch {
	case n.Protocol != "sdk":
		return activities.Capabilities{Missing: activities.MissingType}
	case !a.Has(n.AgentID):
		return activities.Capabilities{Missing: activities.MissingTarget, Targets: a.Names}
	}
	return activities.Capabilities{Work: a.Work, Targets: a.Names}
}

// Execute fails with DELEGATE_AGENT_NOT_FOUND: Work performs the agents that are configured.
func (a *Agents) Execute(_ context.Context, req activities.Request) (activities.Result, error) {
	return activities.Result{}, a.notFound(req.AgentID)
}

// Work performs an attempt of an agent from where its journal ends.
func (a *Agents) Work(ctx context.Context, req activities.Request, j activities.Journal) (activities.End, error) {
	return a.WorkWith(ctx, req, Override{}, j)
}

// task is the first message of an agent: the field of the input with the task, and the other fields as JSON.
func task(input map[string]any) string {
	rest := maps.Clone(input)
	text := ""
	for _, name := range []string{"task", "text", "prompt", "message"} {
		if s, ok := rest[name].(string); ok && text == "" {
			text = s
			delete(rest, name)
		}
	}
	if len(rest) == 0 {
		return text
	}
	return strings.TrimSpace(text + "\n\n" + string(jsonvalue.Canonical(rest)))
}

func recorded(steps []activities.Step) []agentloop.Step {
	out := make([]agentloop.Step, len(steps))
	for i, s := range steps {
		out[i] = agentloop.Step{Key: s.Key, Kind: s.Kind, Body: s.Body, Totals: s.Totals, At: s.At}
	}
	return out
}
