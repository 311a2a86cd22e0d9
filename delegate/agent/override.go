package agent

import (
	"context"
	"maps"
	"slices"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
)

// Override holds the settings of a node that replace those of its agent. Zero fields keep the agent's. Tools, gates, hooks and budgets
// are always the agent's.
type Override struct {
	// Task is the first message; "" makes it of the request's input.
	Task         string
	Instructions string
	// Model is asked alone, without fallbacks: the configured model of that name, else one that asks for it, else the agent's first model
	// with this name of the provider, whose price is then not known.
	Model             string
	Temperature, TopP *float64
	// MaxTokens bounds each answer. One that is cut there is continued, not asked for again with a higher bound.
	MaxTokens int
	Seed      *int
	Stop      []string
	Stream    *bool
	// Schema is the schema of the answer. The agent's number of repairs applies, or one.
	Schema map[string]any
}

// WorkWith is Work with an override, which is recorded with the configuration when the agent starts. Later calls for the same attempt use
// the recorded configuration; a retry may use today's models and budgets.
func (a *Agents) WorkWith(ctx context.Context, req activities.Request, o Override, j activities.Journal) (activities.End, error) {
	steps, err := j.Steps(ctx)
	if err != nil {
		return activities.End{}, err
	}
	w := &attempt{agents: a, req: req, journal: j, inputs: make(chan outcome), stops: map[string]context.CancelFunc{}}
	begun := j.Begun()
	if len(steps) == 0 {
		if steps, err = a.takenOver(ctx, &req, j); err != nil {
			return activities.End{}, err
		}
		begun = true // what follows from them, by the attempt that has failed
	}
	if len(steps) > 0 {
		done := recorded(steps)
		w.base = agentsteps.KeyBase(&agentsteps.Step{Key: done[0].Key, Kind: done[0].Kind, Body: done[0].Body})
		w.results.note(done)
		if w.machine, err = agentloop.Replay(done, begun); err != nil {
			return activities.End{}, err
		}
		if !w.machine.Reconfigures() {
			return w.run(ctx)
		}
	}
	config, err := a.overridden(req.AgentID, o)
	if err != nil {
		return activities.End{}, err
	}
	if w.machine != nil { // a retry, which asks for today's configuration
		if err := w.machine.Handle(agentloop.Reconfigured{Config: config}, a.now()); err != nil {
			return activities.End{}, err
		}
		return w.run(ctx)
	}
	if o.Task == "" {
		o.Task = task(req.Input)
	}
	w.machine = agentloop.New(config, o.Task)
	return w.run(ctx)
}

// takenOver copies the steps that an attempt keeps of the failed one before it, and returns the journal; nil if it starts from the beginning.
func (a *Agents) takenOver(ctx context.Context, req *activities.Request, j activities.Journal) ([]activities.Step, error) {
	earlier, ok := j.(activities.Earlier)
	if !ok || a.resolved[req.AgentID].Retries == agentloop.RetriesAnew {
		return nil, nil
	}
	before, ok, err := earlier.Before(ctx)
	if err != nil || !ok {
		return nil, err
	}
	plain := make([]agentsteps.Step, len(before.Steps))
	for i, s := range before.Steps {
		plain[i] = agentsteps.Step{Key: s.Key, Kind: s.Kind, Body: s.Body, Totals: s.Totals}
	}
	var copies []activities.Step
	for _, s := range agentsteps.Copies(plain, before.Code, before.Message, req.ExecutionID, before.Attempt) {
		copies = append(copies, activities.Step{Key: s.Key, Kind: s.Kind, Body: s.Body, Totals: s.Totals})
	}
	if len(copies) == 0 {
		return nil, nil
	}
	if err := j.Record(ctx, copies...); err != nil { // in one commit: a part of them would make calls again
		return nil, err
	}
	return j.Steps(ctx)
}

// overridden returns the configuration of an agent with the settings of a node. The error is DELEGATE_AGENT_NOT_FOUND or AGENT_CONFIG_INVALID.
func (a *Agents) overridden(name string, o Override) (agentloop.Config, error) {
	c, ok := a.resolved[name]
	if !ok {
		return c, a.notFound(name)
	}
	if o.Instructions != "" {
		c.Instructions = o.Instructions
	}
	if o.Stream != nil {
		c.Stream = *o.Stream
	}
	if o.Model != "" {
		c.Models, c.Fallback = []agentloop.Model{a.modelNamed(o.Model, c.Models[0])}, nil
	}
	c.Models = slices.Clone(c.Models)
	for i := range c.Models {
		m := &c.Models[i]
		if o.Temperature != nil {
			m.Temperature = o.Temperature
		}
		if o.TopP != nil {
			m.TopP = o.TopP
		}
		if o.Seed != nil {
			m.Seed = o.Seed
		}
		if o.Stop != nil {
			m.Stop = o.Stop
		}
		if o.MaxTokens > 0 {
			m.MaxTokens, m.MaxTokensCeiling = o.MaxTokens, o.MaxTokens
		}
	}
	if o.Schema != nil {
		out := agentloop.Output{Schema: o.Schema, Repairs: 1}
		if c.Output != nil {
			out.Repairs = c.Output.Repairs
		}
		c.Output = &out
	}
	resolved, failure := agentloop.Resolve(c)
	if failure != nil {
		return c, &activities.Failure{Code: string(failure.Code), Message: failure.Message, Retryable: activities.RetryPointless}
	}
	return resolved, nil
}

// modelNamed returns the model that a node asks for.
func (a *Agents) modelNamed(name string, first agentloop.Model) agentloop.Model {
	if m, ok := a.config.Models[name]; ok {
		m.Name = name
		return m.Model
	}
	if first.Model == name {
		return first
	}
	for _, known := range slices.Sorted(maps.Keys(a.config.Models)) {
		if m := a.config.Models[known]; m.Model.Model == name {
			m.Name = known
			return m.Model
		}
	}
	first.Model, first.Price = name, nil
	return first
}

func (a *Agents) notFound(name string) error {
	failure := activities.Fail(problem.DelegateAgentNotFound, "agent %q is not configured%s", name, meant(name, a.resolved))
	failure.Retryable = activities.RetryPointless
	return failure
}
