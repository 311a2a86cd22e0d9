// Package capable says what a process lacks to perform the nodes of a definition.
package capable

import (
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/runview"
)

// Capabilities says what a process can perform.
type Capabilities interface {
	// Missing names what the process lacks to perform a node, and the setting that provides it; "" if it lacks nothing.
	Missing(n *definition.Node) (missing, setting string)
}

// Lack returns what a process lacks to perform a node of a run, nil if it lacks nothing.
func Lack(c Capabilities, executionID string, n *definition.Node) *runview.Lack {
	if n == nil {
		return nil
	}
	missing, setting := c.Missing(n)
	if missing == "" {
		return nil
	}
	return &runview.Lack{ExecutionID: executionID, NodeID: n.ID, Missing: missing, Setting: setting}
}

// LackAfter returns what a process lacks to perform the nodes of a run that can follow some others, the nearest first.
func LackAfter(c Capabilities, executionID string, prog *definition.Program, nodes []*definition.Node) *runview.Lack {
	for n := range prog.After(nodes) {
		if l := Lack(c, executionID, n); l != nil {
			l.Host = true
			return l
		}
	}
	return nil
}
