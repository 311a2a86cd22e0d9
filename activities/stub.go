package activities

import (
	"context"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// DemoOutputKey is the field of a node's metadata with the output that a Stub returns.
const DemoOutputKey = "demo_output"

// Stub pretends to perform every activity and succeeds at once. It is for demonstrations and tests, and is used only
// only on request: an engine without executors rejects activities instead.
//
// The output is the entry of Outputs for the node's id; without one, the object "demo_output" in the node's metadata;
// without that, {}. The zero value works.
type Stub struct {
	// Outputs maps node ids to outputs. It must not be changed once the stub is in use.
	Outputs map[string]any
}

// Execute answers with a copy of the node's output.
func (s Stub) Execute(_ context.Context, req Request) (Result, error) {
	if output, ok := s.Outputs[req.NodeID]; ok {
		return Result{Output: jsonvalue.Clone(output)}, nil
	}
	if output, ok := req.Metadata[DemoOutputKey].(map[string]any); ok {
		return Result{Output: jsonvalue.CloneMap(output)}, nil
	}
	return Result{Output: map[string]any{}}, nil
}

// Capabilities reports that every node is answered at once.
func (s Stub) Capabilities(Node) Capabilities { return Capabilities{Immediate: true} }
