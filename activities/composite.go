package activities

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/port"
)

// Composite sends each activity to the executor of its node type, or to Fallback if there is none. Without a fallback
// such an activity fails with COMPOSITE_EXECUTOR_NOT_CONFIGURED, and so does a node type outside the three in any
// case. The zero value refuses everything.
type Composite struct {
	Step, LLMCall, ToolCall Executor
	// Fallback serves the types that have no executor of their own; usually nil, or a Stub for demonstrations.
	Fallback Executor
	// Setting names, in errors, what an operator sets so that nodes of a type are performed; nil names the member above.
	Setting func(nodeType string) string
}

// Execute hands the request on.
func (c Composite) Execute(ctx context.Context, req Request) (Result, error) {
	return c.executor(req.NodeType, req.NodeID).Execute(ctx, req)
}

// Immediate reports whether the executor that would get the request answers at once; a refusal does.
func (c Composite) Immediate(req Request) bool {
	return port.Immediate(c.executor(req.NodeType, req.NodeID), req)
}

// Performs reports whether an executor, or the fallback, serves a node type.
func (c Composite) Performs(nodeType string) bool {
	return port.Performs(c.executor(nodeType, ""), nodeType)
}

// PerformsNode reports whether the executor that serves the node's type performs this node.
func (c Composite) PerformsNode(nodeType string, config map[string]any) bool {
	return performsNode(c.executor(nodeType, ""), nodeType, config)
}

// Classes returns what the executor that serves the node's type says.
func (c Composite) Classes(nodeType string, config map[string]any) []string {
	return classes(c.executor(nodeType, ""), nodeType, config)
}

// Describe returns what the executor that would get the request says.
func (c Composite) Describe(req Request) map[string]any {
	return port.Describe(c.executor(req.NodeType, req.NodeID), req)
}

// Journals reports whether the executor that would get the request records its steps.
func (c Composite) Journals(req Request) bool {
	return journals(c.executor(req.NodeType, req.NodeID), req)
}

// Work hands a request on whose steps are recorded.
func (c Composite) Work(ctx context.Context, req Request, j Journal) (End, error) {
	return work(ctx, c.executor(req.NodeType, req.NodeID), req, j)
}

// executor returns the executor for a node type, which is one that refuses if none is configured.
func (c Composite) executor(nodeType, nodeID string) Executor {
	routes := port.Routes[Executor]{{Kind: "step", Executor: c.Step}, {Kind: "llm_call", Executor: c.LLMCall}, {Kind: "tool_call", Executor: c.ToolCall}}
	executor, known := routes.Find(nodeType, c.Fallback)
	switch {
	case !known:
		return refusal{Fail(problem.ExecutorNotConfigured, "nodes of type %q are not activities", nodeType)}
	case executor == nil:
		return refusal{NotConfigured(nodeType, nodeID, c.SettingOf(nodeType))}
	}
	return executor
}

// SettingOf names what is set so that nodes of a type are performed, "" for a type that is not an activity.
func (c Composite) SettingOf(nodeType string) string {
	if c.Setting != nil {
		return c.Setting(nodeType)
	}
	return map[string]string{"step": "Composite.Step", "llm_call": "Composite.LLMCall", "tool_call": "Composite.ToolCall"}[nodeType]
}

// NotConfigured is the failure of an activity for which no executor is configured. It names the setting that changes
// this, and the other way out, the host.
func NotConfigured(nodeType, nodeID, setting string) *Failure {
	return Fail(problem.ExecutorNotConfigured,
		"no executor configured for %s nodes such as %q: set %s, or run in mode \"host_mediated\" and submit the outcome",
		nodeType, nodeID, setting)
}

// performsNode reports whether an executor performs a node, as one does that names no nodes.
func performsNode(executor Executor, nodeType string, config map[string]any) bool {
	s, ok := executor.(NodeSelective)
	return !ok || s.PerformsNode(nodeType, config)
}

// classes returns the classes that an executor names, if it names any.
func classes(executor Executor, nodeType string, config map[string]any) []string {
	if c, ok := executor.(Classified); ok {
		return c.Classes(nodeType, config)
	}
	return nil
}

// journals reports whether an executor records the steps of a request.
func journals(executor Executor, req Request) bool {
	j, ok := executor.(Journaled)
	return ok && j.Journals(req)
}

// work hands a request to an executor that records its steps.
func work(ctx context.Context, executor Executor, req Request, j Journal) (End, error) {
	if w, ok := executor.(Journaled); ok {
		return w.Work(ctx, req, j)
	}
	return End{}, Fail(problem.ExecutorUnsupportedNode, "the executor for node %q records no steps", req.NodeID)
}

// refusal fails every attempt, at once.
type refusal struct{ err error }

func (r refusal) Execute(context.Context, Request) (Result, error) { return Result{}, r.err }
func (r refusal) Immediate(Request) bool                           { return true }
func (r refusal) Performs(string) bool                             { return false }
func (r refusal) PerformsNode(string, map[string]any) bool         { return false }

var (
	_ Immediate     = Composite{}
	_ Selective     = Composite{}
	_ NodeSelective = Composite{}
	_ Classified    = Composite{}
	_ Journaled     = Composite{}
	_ Describer     = Composite{}
)
