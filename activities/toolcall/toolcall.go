package toolcall

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/childprocess"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// Executor performs tool_call nodes. It is safe for concurrent use.
type Executor struct {
	config  Config
	servers map[string]*server
	calls   *childprocess.Calls
	// wait counts the goroutines that manage sessions.
	wait sync.WaitGroup
}

// New checks the configuration, secret references included, and makes an executor. Nothing is started yet. The error is
// a *problem.Error with code USAGE_ERROR.
func New(c Config) (*Executor, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	e := &Executor{config: c.withDefaults(), servers: map[string]*server{}, calls: childprocess.NewCalls()}
	for name, s := range c.Servers {
		e.servers[name] = &server{
			Server: s, name: name, config: &e.config, wait: &e.wait,
			log: e.config.Logger.With(logServer, name),
		}
	}
	return e, nil
}

// Close ends the calls in flight and all sessions, and returns when no process is left.
func (e *Executor) Close() error {
	e.calls.Close()
	for _, s := range e.servers {
		s.shut()
	}
	e.wait.Wait()
	return nil
}

// Capabilities reports whether the manifest has the node's server, and describes calls. A node without a server fails
// wherever it runs.
func (e *Executor) Capabilities(n activities.Node) activities.Capabilities {
	can := activities.Capabilities{Describe: e.describe, Targets: e.usable}
	server, _ := n.Config["server"].(string)
	if _, err := e.find(server); n.Type != "tool_call" || err != nil && server != "" {
		can.Missing = activities.MissingTarget
	}
	return can
}

// Execute calls the tool that config.server and config.tool name (spec: activities, 6.2).
func (e *Executor) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	if req.NodeType != "tool_call" {
		return activities.Result{}, activities.Fail(problem.ExecutorUnsupportedNode, "node %q is of type %q; only tool_call nodes are performed here", req.NodeID, req.NodeType)
	}
	call, _, err := e.prepare(req)
	if err != nil {
		return activities.Result{}, err
	}
	output, err := e.Call(ctx, call)
	if err == nil && jsonvalue.Size(output, maxNodeOutput) > maxNodeOutput {
		failure := activities.Fail(problem.ActivityOutputTooLarge, "the output of tool %q exceeds the limit of %d bytes", call.Tool, maxNodeOutput)
		failure.Retryable = activities.RetryPointless
		return activities.Result{}, failure
	}
	return activities.Result{Output: output}, err
}

// maxNodeOutput is how large the output of a node may be whatever its run allows. An agent keeps larger ones.
const maxNodeOutput = 10 << 20

// describe names the server and the tool, with the arguments of the call.
func (e *Executor) describe(req activities.Request) map[string]any {
	call, s, err := e.prepare(req)
	if err != nil {
		return nil
	}
	d := map[string]any{"server": call.Server, "tool": call.Tool, "arguments": call.Arguments}
	if s.URL != "" {
		d["endpoint"] = activities.Endpoint(s.URL)
	}
	return d
}

// prepare makes the call of a request, and finds its server.
func (e *Executor) prepare(req activities.Request) (call Call, s *server, err error) {
	call = Call{IdempotencyKey: req.IdempotencyKey, Heartbeat: req.Heartbeat}
	call.Server, _ = req.Config["server"].(string)
	call.Tool, _ = req.Config["tool"].(string)
	if call.Server == "" || call.Tool == "" {
		return call, nil, activities.Fail(problem.InvalidToolCallConfig, "tool_call %q needs config.server and config.tool", req.NodeID)
	}
	if s, err = e.find(call.Server); err == nil {
		call.Arguments, err = arguments(req)
	}
	return call, s, err
}

// Call is one call of a tool.
type Call struct {
	Server, Tool string
	// Arguments may be nil, which is {}.
	Arguments map[string]any
	// IdempotencyKey goes to the server in the call's _meta; "" leaves it out.
	IdempotencyKey string
	// Heartbeat gets the server's progress messages; may be nil.
	Heartbeat func(details map[string]any)
}

// Call calls a tool and returns its result as a plain value (spec: activities, 6.5). Errors are *activities.Failure.
func (e *Executor) Call(ctx context.Context, c Call) (any, error) {
	var value any
	err := e.with(ctx, c.Server, func(ctx context.Context, s *server, x *session) error {
		arguments := c.Arguments
		if arguments == nil {
			arguments = map[string]any{}
		}
		agreed, err := x.admits(ctx, c.Tool, arguments)
		if err != nil {
			return err
		}
		result, err := x.call(ctx, c)
		if err != nil {
			return err
		}
		if value, err = output(c.Tool, result, agreed); err != nil {
			return err
		}
		if limit := s.config.MaxOutputBytes; jsonvalue.Size(value, limit) > limit {
			return activities.Fail(problem.ActivityOutputTooLarge, "the output of tool %q exceeds the limit of %d bytes", c.Tool, limit)
		}
		value = x.secret().ScrubOutput(value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return value, nil
}

// Tools connects to a server and lists its tools. Errors are *activities.Failure.
func (e *Executor) Tools(ctx context.Context, name string) ([]Tool, error) {
	var tools []Tool
	err := e.with(ctx, name, func(ctx context.Context, _ *server, x *session) error {
		list, err := x.list(ctx)
		for _, t := range list {
			tool := Tool{Name: t.Name, Title: x.secret().Scrub(t.Title), Description: x.secret().Scrub(t.Description)}
			if plain, err := jsonvalue.Normalize(t.InputSchema); err == nil {
				tool.InputSchema, _ = x.secret().ScrubOutput(plain).(map[string]any)
			}
			if a := t.Annotations; a != nil {
				// A tool with contradictory hints counts as one that changes something.
				tool.ReadOnly, tool.Idempotent = a.ReadOnlyHint && (a.DestructiveHint == nil || !*a.DestructiveHint), a.IdempotentHint
			}
			tools = append(tools, tool)
		}
		return err
	})
	return tools, err
}

// Changes returns a number that rises whenever the list of a server's tools may have become another one: the server says so, or was
// connected to again. It is 0 for a server that was not connected to yet, or is unknown.
func (e *Executor) Changes(name string) int64 {
	s, err := e.find(name)
	if err != nil {
		return 0
	}
	return s.changes.Load()
}

// with does something with a session of a server, within the time limit.
func (e *Executor) with(ctx context.Context, name string, do func(context.Context, *server, *session) error) error {
	s, err := e.find(name)
	if err != nil {
		return err
	}
	ctx, end, err := e.calls.Begin(ctx, e.config.Timeout)
	if err != nil {
		return activities.Fail(problem.RunnerClosed, "%v", err)
	}
	defer end()
	x, err := s.acquire(ctx)
	if err != nil {
		return s.named(s.explain(ctx, nil, err))
	}
	err = do(ctx, s, x)
	if err == nil {
		s.release(x, true, nil)
		return nil
	}
	failure := s.explain(ctx, x, err)
	switch problem.Code(failure.Code) {
	case problem.MCPToolExecutionError:
		s.release(x, true, nil)
		return failure // the tool's own words
	case problem.MCPProtocolError, problem.MCPArgumentsInvalid, problem.OutputSchemaViolation, problem.ActivityCancelled:
		s.release(x, true, nil)
	case problem.ActivityTimeout, problem.RunnerClosed:
		s.release(x, false, nil)
	default:
		s.release(x, false, failure)
	}
	return s.named(failure)
}

// find returns a server that may be used.
func (e *Executor) find(name string) (*server, error) {
	s, ok := e.servers[name]
	switch {
	case !ok:
		names := slices.Sorted(maps.Keys(e.servers))
		advice := cmp.Or(suggest.DidYouMean(name, names), "configured: "+strings.Join(names, ", "))
		return nil, activities.Fail(problem.MCPServerNotConfigured, "MCP server %q is not configured; %s", name, advice)
	case s.Disabled:
		return nil, activities.Fail(problem.MCPServerNotConfigured, "MCP server %q is disabled in the manifest", name)
	case s.URL == "" && !Allowed(s.Command, e.config.AllowCommands):
		return nil, activities.Fail(problem.MCPCommandNotAllowed,
			"MCP server %q: command %q may not be started; name it in %s", name, s.Command, e.config.AllowSetting)
	}
	return s, nil
}

// usable returns the names of the servers that may be used, sorted.
func (e *Executor) usable() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(e.servers)), func(name string) bool { _, err := e.find(name); return err != nil })
}

// named adds the server's name to a failure.
func (s *server) named(failure *activities.Failure) error {
	copied := *failure
	copied.Message = strings.TrimSuffix(fmt.Sprintf("MCP server %q: %s", s.name, failure.Message), ": ")
	return &copied
}
