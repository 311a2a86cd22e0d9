package config

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/activities/stepcommand"
	"github.com/workflows-engine/workflows-engine/activities/toolcall"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agent/llmagent"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/internal/buildstamp"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/memory"
)

// Executors perform activities and delegations in process. A node without an executor fails with the name of the missing setting.
type Executors struct {
	Activities activities.Executor
	Delegates  activities.Executor
	// Agents are the agents of Config.Agents; nil without them.
	Agents   *agent.Agents
	routes   []route
	tools    *toolcall.Executor
	commands *stepcommand.Commands
}

// Within returns executors whose attempts wait for memory of the process.
func (e Executors) Within(b *memory.Budget) Executors {
	within := func(next activities.ExecutorFunc) activities.ExecutorFunc {
		return func(ctx context.Context, req activities.Request) (activities.Result, error) {
			leave, err := b.Enter(ctx)
			if err != nil {
				return activities.Result{}, err
			}
			defer leave()
			return next(ctx, req)
		}
	}
	if e.Activities != nil && b != nil {
		e.Activities = activities.Wrap(e.Activities, within)
	}
	if e.Delegates != nil && b != nil {
		e.Delegates = activities.Wrap(e.Delegates, within)
	}
	return e
}

// TaskEnds returns an executor that performs no delegation and cancels unwanted tasks at agents.
func (e Executors) TaskEnds() activities.Executor { return taskEnds{e.Delegates} }

type taskEnds struct{ activities.Executor }

// Capabilities leaves every delegation to other processes.
func (t taskEnds) Capabilities(n activities.Node) activities.Capabilities {
	return activities.Capabilities{Missing: activities.MissingType, Tasks: activities.CapabilitiesOf(t.Executor, n).Tasks}
}

// Close stops the processes and connections of the executors. Close the runner that uses them first.
func (e Executors) Close() error {
	var errs []error
	if e.commands != nil {
		errs = append(errs, e.commands.Close())
	}
	if e.tools != nil {
		errs = append(errs, e.tools.Close())
	}
	return errors.Join(errs...)
}

// route names the executor of one node type or delegate protocol.
type route struct{ name, by string }

// The executors of a route (spec: cli-and-config, 12). Stub and mock need the demo profile.
const (
	byProduction = "production"
	byMissing    = "missing"
	byStub       = "stub(demo)"
	byMock       = "mock(demo)"
)

// Configured reports whether any executor is configured.
func (e Executors) Configured() bool {
	return slices.ContainsFunc(e.routes, func(r route) bool { return r.by != byMissing })
}

// Performs reports whether an executor serves a node type or delegate protocol: step, llm_call, tool_call, a2a, mcp, sdk.
func (e Executors) Performs(name string) bool {
	return slices.ContainsFunc(e.routes, func(r route) bool { return r.name == name && r.by != byMissing })
}

// Routing describes in a few lines the executor of each kind of node.
func (e Executors) Routing() []string {
	var nodes, protocols []string
	demo := "inactive"
	for _, r := range e.routes {
		text := r.name + "=" + r.by
		if r.by == byMock || r.by == byStub {
			demo = "active"
		}
		switch r.name {
		case "a2a", "mcp", "sdk":
			protocols = append(protocols, text)
		default:
			nodes = append(nodes, text)
		}
	}
	return []string{
		"activity routing: " + strings.Join(nodes, ", "),
		"delegate routing: " + strings.Join(protocols, ", "),
		"demo stub fallback: " + demo,
	}
}

// Routes returns the executors of node types and delegate protocols as attributes of a log line.
func (e Executors) Routes() []slog.Attr {
	attributes := make([]slog.Attr, len(e.routes))
	for i, r := range e.routes {
		attributes[i] = slog.String(r.name, r.by)
	}
	return attributes
}

// AgentIDs returns the ids of the configured agents, sorted.
func (c *Config) AgentIDs() []string {
	if c.Agents == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(c.Agents.Agents))
}

// Executors builds the configured executors. Nodes without an executor get stub outputs with the demo profile, and fail without it.
func (c *Config) Executors() (Executors, error) {
	var (
		e         Executors
		composite = activities.Composite{Setting: envname.OfExecutor}
		missing   = byMissing
	)
	if c.Profile == Demo {
		composite.Fallback, missing = activities.Stub{}, byStub
	}
	step := missing
	if c.StepHandlers != nil || c.StepCommands != nil {
		steps, err := c.steps(&e)
		if err != nil {
			return Executors{}, err
		}
		composite.Step, step = steps, byProduction
	}
	llm := missing
	models, err := c.models()
	if err != nil {
		return Executors{}, err
	}
	if c.LLM != nil {
		model, err := models("", nil)
		if err != nil {
			return Executors{}, err
		}
		composite.LLMCall, err = llmcall.New(llmcall.Config{Model: model, Stream: c.LLM.Stream, NoRepair: c.LLM.NoRepair})
		if err != nil {
			return Executors{}, err
		}
		llm = byProduction
	}
	tool := missing
	if c.Manifest != nil {
		tools, err := c.Tools(c.Manifest, c.Log)
		if err != nil {
			return Executors{}, err
		}
		e.tools, composite.ToolCall, tool = tools, tools, byProduction
	}
	if c.Agents != nil {
		agents, err := c.NewAgents(c.Agents, e.tools, composite)
		if err != nil {
			return Executors{}, err
		}
		e.Agents, composite.LLMCall = agents, llmagent.New(agents, composite, nil)
	}
	e.Activities = composite
	e.routes = []route{{"llm_call", llm}, {"tool_call", tool}, {"step", step}}
	if err := c.addDelegates(&e); err != nil {
		return Executors{}, err
	}
	for _, warning := range c.env.notes.take() { // from settings that only executors read
		if c.Log != nil {
			c.Log.Warn(warning)
		}
	}
	return e, nil
}

// addDelegates builds the delegate executors.
func (c *Config) addDelegates(e *Executors) error {
	composite := activities.Composite{Setting: envname.OfExecutor}
	missing := byMissing
	if c.Profile == Demo {
		composite.Fallback, missing = delegate.Mock{}, byMock
	}
	a2a := missing
	if c.A2A != nil {
		endpoint, err := c.A2A.executor()
		if err != nil {
			return err
		}
		composite.A2A, a2a = endpoint, byProduction
	}
	mcp := missing
	if e.tools != nil && c.Manifest.Agents != nil {
		composite.MCP, mcp = toolDelegates(e.tools, c.Manifest.Agents), byProduction
	}
	sdk := missing
	if e.Agents != nil {
		composite.SDK, sdk = e.Agents, byProduction
	}
	e.Delegates = composite
	e.routes = append(e.routes, route{"a2a", a2a}, route{"mcp", mcp}, route{"sdk", sdk})
	return nil
}

// RunnerOptions returns the options that both commands share; the caller adds its own.
func (c *Config) RunnerOptions(e Executors, logger *slog.Logger) graph.Options {
	waitLimit := c.WaitLimit
	if waitLimit == 0 {
		waitLimit = -1 // 0 means the runner's default
	}
	hooks, deliver := c.Hooks()
	return graph.Options{
		Webhooks: hooks, Deliver: deliver, DeliverLimit: c.Drain, Glossary: envname.Options,
		Activities: e.Activities, Delegates: e.Delegates, VerifyDefinition: c.VerifySignature, WaitLimit: waitLimit, MinHostTimeout: c.MinHostTimeout, Drain: c.Drain, Logger: logger,
		MaxVisits: c.Limits.Visits, MaxRecords: c.Limits.Records, MaxBytes: c.Limits.Bytes, MaxPending: c.Limits.Pending,
		MaxDepth: c.Limits.Depth, Tree: c.Limits.Tree,
		CheckSteps: agent.CheckSteps, CheckAnswer: agent.CheckAnswer,
		Capacity: c.Capacity, MaxQueued: c.MaxQueued, Queues: c.Queues, FairLabel: c.FairLabel, Version: buildstamp.Read().Version,
		Limits: c.AttemptLimits, Attempts: c.Attempts, Redaction: c.Redaction(), OmitRequests: c.OmitRequests,
	}
}
