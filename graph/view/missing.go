package view

import (
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Lack is an executor or definition that this process needs to continue a run, and does not have.
type Lack struct {
	// ExecutionID is the run that needs it, or its subworkflow; NodeID the node.
	ExecutionID string
	NodeID      string
	// Missing names it, such as `step handler "urn:crm:lookup"`.
	Missing string
	// Setting is the setting that adds it to a process; "" if unknown.
	Setting string
	// Partial is true if this process performs other nodes of the same type or protocol: its Setting has no entry for this one.
	Partial bool
	// Host is true if the run does not need it yet, but may need it after the answer that it waits for. The caller can have a host perform
	// the node instead, by answering in host-mediated mode.
	Host bool
}

// Err returns the error of a process that leaves the run to other processes.
func (l *Lack) Err() error {
	return problem.New(problem.ExecutorNotConfigured, "%s is not configured here", l.Missing).
		WithPlace(problem.Place{ExecutionID: l.ExecutionID, NodeID: l.NodeID})
}
