package config

import (
	"context"
	"errors"
	"log/slog"
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
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/memory"
)

// Executors perform activities and delegates in process. What is not configured is refused with the name of its setting.
type Executors struct {
	Activities activities.Executor
	Delegates  delegate.Executor
	// Agents are those of Config.Agents; nil without.
	Agents   *agent.Agents
	routes   []route
	tools    *toolcall.Executor
	commands *stepcommand.Commands
}

// Within returns the executors as those that wait, before each attempt, for room in the memory of the process.
func (e Executors) Within(b *memory.Budget) Executors {
	if e.Activities != nil && b != nil {
		e.Activities = activities.Wrap(e.Activities, func(next activities.ExecutorFunc) activities.ExecutorFunc { return within(b, next) })
	}
	if e.Delegates != nil && b != nil {
		e.Delegates = delegate.Wrap(e.Delegates, func(next delegate.ExecutorFunc) delegate.ExecutorFunc { return within(b, next) })
	}
	return e
}

func within[Request, Result any](b *memory.Budget, perform func(context.Context, Request) (Result, error)) func(context.Context, Request) (Result, error) {
	return func(ctx context.Context, req Request) (res Result, err error) {
		leave, err := b.Enter(ctx)
		if err != nil {
			return res, err
		}
		defer leave()
		return perform(ctx, req)
	}
}

// TaskEnds returns an executor that performs no delegation and ends tasks at agents that nobody waits for any more; nil if there is
// none for agents.
func (e Executors) TaskEnds() delegate.Executor {
	if tasks, ok := e.Delegates.(delegate.Tasks); ok {
		return taskEnds{tasks}
	}
	return nil
}

type taskEnds struct{ delegate.Tasks }

// Performs leaves every delegation to other processes.
func (taskEnds) Performs(string) bool { return false }

// Close ends what the executors have started. It comes after the end of the runner that uses them.
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

// route names what serves one node type or delegate protocol.
type route struct{ name, by string }

// What can serve a route (spec: cli-and-config, 12). Stub and mock need the demo profile.
const (
	byProduction = "production"
	byMissing    = "missing"
	byStub       = "stub(demo)"
	byMock       = "mock(demo)"
)

// Configured reports whether anything can be performed in process.
func (e Executors) Configured() bool {
	return slices.ContainsFunc(e.routes, func(r route) bool { return r.by != byMissing })
}

// Performs reports whether something serves a node type or delegate protocol: step, llm_call, tool_call, a2a, mcp, sdk.
func (e Executors) Performs(name string) bool {
	return slices.ContainsFunc(e.routes, func(r route) bool { return r.name == name && r.by != byMissing })
}

// Routing says in a few lines what performs which kind of node.
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

// Routes says what performs each kind of node and each delegate protocol, as attributes of a log line.
func (e Executors) Routes() []slog.Attr {
	attributes := make([]slog.Attr, len(e.routes))
	for i, r := range e.routes {
		attributes[i] = slog.String(r.name, r.by)
	}
	return attributes
}

// Executors builds the configured executors. Without one, nodes get invented outputs with the demo profile, and are refused
// without it.
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
	if c.LLM != nil {
		models, err := llmcall.New(*c.LLM)
		if err != nil {
			return Executors{}, err
		}
		composite.LLMCall, llm = models, byProduction
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
		models := composite.LLMCall
		if models == nil {
			models = composite.Fallback
		}
		nodes := llmagent.New(agents, models, nil)
		nodes.Setting = envname.OfExecutor
		e.Agents, composite.LLMCall = agents, nodes
	}
	e.Activities = composite
	e.routes = []route{{"llm_call", llm}, {"tool_call", tool}, {"step", step}}
	if err := c.addDelegates(&e); err != nil {
		return Executors{}, err
	}
	for _, warning := range c.env.notes.take() { // of what only executors read
		if c.Log != nil {
			c.Log.Warn(warning)
		}
	}
	return e, nil
}

// addDelegates builds the delegate executors.
func (c *Config) addDelegates(e *Executors) error {
	composite := delegate.Composite{Setting: envname.OfExecutor}
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

// RunnerOptions returns the options that both commands have in common; the caller adds its own.
func (c *Config) RunnerOptions(e Executors, logger *slog.Logger) graph.Options {
	waitLimit := c.WaitLimit
	if waitLimit == 0 {
		waitLimit = -1 // the runner takes 0 for its default
	}
	hooks, deliver := c.Hooks()
	return graph.Options{
		Webhooks: hooks, Deliver: deliver, DeliverLimit: c.Drain, Glossary: envname.Options,
		Activities: e.Activities, Delegates: e.Delegates, VerifyDefinition: c.VerifySignature, WaitLimit: waitLimit, MinHostTimeout: c.MinHostTimeout, Drain: c.Drain, Logger: logger,
		MaxVisits: c.Limits.Visits, MaxRecords: c.Limits.Records, MaxBytes: c.Limits.Bytes, MaxPending: c.Limits.Pending,
		MaxDepth: c.Limits.Depth, Tree: c.Limits.Tree,
		CheckSteps: agent.CheckSteps, CheckAnswer: agent.CheckAnswer,
		Limits: c.AttemptLimits, Attempts: c.Attempts, Redaction: c.Redaction(), OmitRequests: c.OmitRequests,
	}
}
