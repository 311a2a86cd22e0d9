package library

import (
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// Capabilities says what a process can perform.
type Capabilities interface {
	// Missing names what the process lacks to perform a node, and the setting that provides it; "" if it lacks nothing.
	Missing(n *definition.Node) (missing, setting string)
}

// MissingExecutor returns what a process lacks to perform a node of a run, nil if it lacks nothing.
func MissingExecutor(c Capabilities, executionID string, n *definition.Node) *view.Lack {
	if n == nil {
		return nil
	}
	missing, setting := c.Missing(n)
	if missing == "" {
		return nil
	}
	return &view.Lack{ExecutionID: executionID, NodeID: n.ID, Missing: missing, Setting: setting}
}

// MissingExecutorAfter returns what a process lacks to perform the nodes of a run that can follow some others, the nearest first.
func MissingExecutorAfter(c Capabilities, executionID string, prog *definition.Program, nodes []*definition.Node) *view.Lack {
	for n := range prog.After(nodes) {
		if l := MissingExecutor(c, executionID, n); l != nil {
			l.Host = true
			return l
		}
	}
	return nil
}
