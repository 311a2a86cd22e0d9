package view

import (
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Lack is what this process lacks to go on with a run.
type Lack struct {
	// ExecutionID and NodeID say where it is needed: in the run or a subworkflow of it.
	ExecutionID string
	NodeID      string
	// Missing names it, such as `step handler "urn:crm:lookup"`.
	Missing string
	// Setting says how a process gets it; "" if nobody can say.
	Setting string
	// Host is true if it is not awaited yet, but may come after what somebody is asked for now: whoever answers can have a
	// host perform it instead, by going on in host-mediated mode.
	Host bool
}

// Err returns the lack as an error: why a process leaves the run to others.
func (l *Lack) Err() error {
	return problem.New(problem.ExecutorNotConfigured, "%s is not configured here", l.Missing).
		WithPlace(problem.Place{ExecutionID: l.ExecutionID, NodeID: l.NodeID})
}
