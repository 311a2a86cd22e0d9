package stepcommand

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// errClosed is what attempts get once Commands is closed.
var errClosed = problem.New(problem.RunnerClosed, "the engine is shutting down")

// Commands performs steps with programs. It is safe for concurrent use.
type Commands struct {
	config Config
	// ctx ends at Close, and with it every attempt.
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup
}

// New checks the configuration, secret references included, and makes Commands. Nothing is started yet. The error is a
// *problem.Error with code USAGE_ERROR.
func New(c Config) (*Commands, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	commands := &Commands{config: c.withDefaults()}
	commands.ctx, commands.cancel = context.WithCancelCause(context.Background())
	return commands, nil
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
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(errClosed)
	c.calls.Wait()
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
	case !c.begin():
		return activities.Result{}, activities.Fail(problem.RunnerClosed, "the engine is shutting down")
	}
	defer c.calls.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(errClosed) })()
	ctx, stop := context.WithTimeout(ctx, command.Timeout)
	defer stop()

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

// begin notes an attempt in flight, unless Commands is closed.
func (c *Commands) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.calls.Add(1)
	}
	return !c.closed
}

// interrupted returns why an attempt's context has ended.
func interrupted(ctx context.Context, handler string) *activities.Failure {
	var failure *activities.Failure
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, problem.RunnerClosed):
		failure = activities.Fail(problem.RunnerClosed, "the engine is shutting down")
	case errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(cause, problem.Timeout):
		failure = activities.Fail(problem.Timeout, "step command %q did not end in time", handler)
	default:
		failure = activities.Fail(problem.ActivityCancelled, "step command %q was cancelled", handler)
	}
	failure.Err = ctx.Err()
	return failure
}

// cut shortens a text for a failure.
func cut(text string, most int) string {
	return problem.Excerpt(strings.TrimSpace(strings.ToValidUTF8(text, "\ufffd")), most)
}

var _ activities.Executor = (*Commands)(nil)
