package stepcommand

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/childprocess"
)

// Commands performs steps with programs. It is safe for concurrent use.
type Commands struct {
	config Config
	calls  *childprocess.Calls
}

// New checks the configuration, secret references included, and makes Commands. Nothing is started yet. The error is a
// *problem.Error with code USAGE_ERROR.
func New(c Config) (*Commands, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Commands{config: c.withDefaults(), calls: childprocess.NewCalls()}, nil
}

// Names lists the handlers in byte order.
func (c *Commands) Names() []string { return slices.Sorted(maps.Keys(c.config.Commands)) }

// Register makes the handlers known to a registry. One that has the name already is replaced.
func (c *Commands) Register(r *activities.StepRegistry) error {
	for _, name := range c.Names() {
		if err := r.RegisterExecutor(name, c); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the attempts in flight, and returns when no process is left.
func (c *Commands) Close() error {
	c.calls.Close()
	return nil
}

// Execute runs the program of the handler that config.handler names. Errors are *activities.Failure.
func (c *Commands) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	handler, _ := req.Config["handler"].(string)
	handler = strings.TrimSpace(handler)
	command, ok := c.config.Commands[handler]
	switch {
	case req.NodeType != "step":
		return activities.Result{}, activities.Fail(problem.ExecutorUnsupportedNode,
			"node %q is of type %q; only step nodes are performed here", req.NodeID, req.NodeType)
	case !ok:
		return activities.Result{}, activities.Fail(problem.HandlerNotFound, "no step command is configured for handler %q", handler)
	}
	ctx, end, err := c.calls.Begin(ctx, command.Timeout)
	if err != nil {
		return activities.Result{}, activities.Fail(problem.RunnerClosed, "%v", err)
	}
	defer end()

	a := attempt{Command: command, handler: handler, config: &c.config}
	result, err := a.run(ctx, req)
	if err == nil {
		result.Output = a.secret.ScrubOutput(result.Output)
		result.Usage, _ = a.secret.ScrubOutput(result.Usage).(map[string]any)
		return result, nil
	}
	failure, ok := errors.AsType[*activities.Failure](err)
	if !ok {
		failure = &activities.Failure{Code: string(problem.ExecutorFailed), Err: err}
	}
	failure.Message = a.secret.Scrub(failure.Message)
	failure.Usage, _ = a.secret.ScrubOutput(failure.Usage).(map[string]any)
	return activities.Result{}, failure
}

// cut shortens a text for a failure.
func cut(text string, most int) string {
	return problem.Excerpt(strings.TrimSpace(strings.ToValidUTF8(text, "\ufffd")), most)
}

var _ activities.Executor = (*Commands)(nil)
