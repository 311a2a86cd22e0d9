package activities

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Composite sends each activity to the executor of its node type, or to Fallback if there is none. Without a fallback
// such an activity fails with COMPOSITE_EXECUTOR_NOT_CONFIGURED, and so does a node type outside the three in any
// case. The zero value refuses everything.
type Composite struct {
	Step, LLMCall, ToolCall Executor
	// Fallback serves the types that have no executor of their own; usually nil, or a Stub for demonstrations.
	Fallback Executor
}

// Execute hands the request on.
func (c Composite) Execute(ctx context.Context, req Request) (Result, error) {
	executor, known := c.route(req.NodeType)
	switch {
	case !known:
		return Result{}, Fail(problem.ExecutorNotConfigured, "nodes of type %q are no activities", req.NodeType)
	case executor == nil:
		return Result{}, NotConfigured(req.NodeType, req.NodeID)
	}
	return executor.Execute(ctx, req)
}

// settings name what an operator sets, so that nodes of a type are performed.
var settings = map[string]string{
	"step":      "WORKFLOW_ENGINE_STEP_COMMANDS or WORKFLOW_ENGINE_STEP_HANDLERS",
	"llm_call":  "WORKFLOW_ENGINE_LLM_CONFIG",
	"tool_call": "WORKFLOW_ENGINE_MCP_CONFIG",
}

// Setting names what an operator sets so that nodes of a type are performed, "" for types that are no activities.
func Setting(nodeType string) string { return settings[nodeType] }

// NotConfigured is the failure of an activity that nothing here performs. It names the setting that changes this, and the
// other way out, the host.
func NotConfigured(nodeType, nodeID string) *Failure {
	return Fail(problem.ExecutorNotConfigured,
		"nothing is configured here that performs %s nodes, so %q cannot run in process; set %s, or run with activity_execution_mode \"host_mediated\" and submit the outcome",
		nodeType, nodeID, settings[nodeType])
}

// Immediate reports whether the executor that would get the request answers at once; a refusal does.
func (c Composite) Immediate(req Request) bool {
	executor, _ := c.route(req.NodeType)
	if executor == nil {
		return true
	}
	immediate, ok := executor.(Immediate)
	return ok && immediate.Immediate(req)
}

// Performs reports whether an executor, or the fallback, serves a node type.
func (c Composite) Performs(nodeType string) bool {
	executor, _ := c.route(nodeType)
	return executor != nil
}

// PerformsNode reports whether the executor that serves the node's type performs this node.
func (c Composite) PerformsNode(nodeType string, config map[string]any) bool {
	executor, _ := c.route(nodeType)
	if nodes, ok := executor.(NodeSelective); ok {
		return nodes.PerformsNode(nodeType, config)
	}
	return executor != nil
}

// route gives the executor for a node type, nil if none is configured; known is false for types that are no
// activities.
func (c Composite) route(nodeType string) (executor Executor, known bool) {
	switch nodeType {
	case "step":
		executor = c.Step
	case "llm_call":
		executor = c.LLMCall
	case "tool_call":
		executor = c.ToolCall
	default:
		return nil, false
	}
	if executor == nil {
		executor = c.Fallback
	}
	return executor, true
}

var (
	_ Immediate     = Composite{}
	_ Selective     = Composite{}
	_ NodeSelective = Composite{}
)
