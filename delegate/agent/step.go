package agent

import (
	"context"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// StepTool is a step as a tool.
type StepTool struct {
	steps   activities.Executor
	handler string
	tool    Tool
}

// NewStepTool makes a tool of the step with a handler. The model sees the name, the description, and the object schema of the arguments;
// nil accepts any object. The handler reads the arguments as the workflow state, and its output is the result. The key of the call is its
// idempotency key: a handler that uses it may be repeated after a crash (WithOnCrash(Repeat)); by default the model is told that the call
// may have been made.
func NewStepTool(steps activities.Executor, handler, name, description string, parameters map[string]any, options ...Option) *StepTool {
	if parameters == nil {
		parameters = map[string]any{"type": "object"}
	}
	t := &StepTool{steps: steps, handler: handler, tool: Tool{Name: name, Description: description, Parameters: parameters, Source: "step:" + handler}}
	for _, o := range options {
		o(&t.tool)
	}
	return t
}

// config is that of a step with the handler.
func (t *StepTool) config() map[string]any { return map[string]any{"handler": t.handler} }

// Tools implements Toolset. A handler that the executor does not have is HANDLER_NOT_FOUND.
func (t *StepTool) Tools(context.Context) ([]Tool, error) {
	if activities.CapabilitiesOf(t.steps, activities.Node{Type: "step", Config: t.config()}).Missing != activities.MissingNothing {
		return nil, activities.Fail(problem.HandlerNotFound, "tool %q: no step handler %q is configured", t.tool.Name, t.handler)
	}
	return []Tool{t.tool}, nil
}

// Call implements Toolset.
func (t *StepTool) Call(ctx context.Context, c Call) (any, error) {
	deadline, _ := ctx.Deadline()
	result, err := t.steps.Execute(ctx, activities.Request{
		ExecutionID: c.Request.ExecutionID, NodeID: c.Request.NodeID, NodeType: "step", Config: t.config(), Metadata: c.Request.Metadata,
		Visit: c.Request.Visit, Attempt: c.Request.Attempt, Deadline: deadline, IdempotencyKey: c.Key,
		State: func() map[string]any { return jsonvalue.CloneMap(c.Arguments) }, Heartbeat: c.Heartbeat,
	})
	if err != nil {
		return nil, err
	}
	if result.Output == nil {
		return map[string]any{}, nil
	}
	plain, err := jsonvalue.Normalize(result.Output)
	if err != nil {
		return nil, activities.Fail(problem.ActivityOutputInvalid, "the output of step %q cannot be recorded: %v", t.handler, err)
	}
	return plain, nil
}

var _ Toolset = (*StepTool)(nil)
