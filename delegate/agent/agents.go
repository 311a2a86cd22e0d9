package agent

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
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

// Performs implements delegate.Selective.
func (a *Agents) Performs(protocol string) bool { return protocol == "sdk" }

// PerformsAgent implements delegate.AgentSelective.
func (a *Agents) PerformsAgent(protocol, agentID string) bool {
	_, ok := a.resolved[agentID]
	return ok && protocol == "sdk"
}

// Journals implements delegate.Journaled.
func (a *Agents) Journals(req delegate.Request) bool {
	return a.PerformsAgent(req.Protocol, req.AgentID)
}

// Delegate refuses an agent that is not configured: Work serves the others.
func (a *Agents) Delegate(_ context.Context, req delegate.Request) (delegate.Result, error) {
	return delegate.Result{}, a.notFound(req.AgentID)
}

// Work implements delegate.Journaled.
func (a *Agents) Work(ctx context.Context, req delegate.Request, j activities.Journal) (activities.End, error) {
	return a.WorkWith(ctx, req, Override{}, j)
}

// task is the first message of an agent: the member of the input that says what to do, and the others as JSON.
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

var (
	_ delegate.Journaled      = (*Agents)(nil)
	_ delegate.AgentSelective = (*Agents)(nil)
	_ delegate.Selective      = (*Agents)(nil)
)
