package view

import (
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// Ending is how a run ended.
type Ending struct {
	Status machine.Status
	State  map[string]any
	Result any
	// Error, Code and NodeID describe a failure, Reason a cancellation.
	Error, Code, NodeID string
	// Data holds further fields of a failure, or nil.
	Data   map[string]any
	Reason string
	// Compensated counts the compensations of the rollback before the end.
	Compensated int
	// Partials maps the nodes of a completed run with a partial output to the reason.
	Partials map[string]string
	// KeepsTasks: agents are not notified of this ending (machine.Cancel.KeepTasks). It is set from records alone.
	KeepsTasks     bool
	DefinitionHash string
}

// EndingOf returns the ending of a machine's run.
func EndingOf(m *machine.Machine, definitionHash string) Ending {
	e := Ending{Status: m.Status(), State: m.State(), Reason: m.Reason(), Compensated: m.Compensated(), Partials: m.Partials(), DefinitionHash: definitionHash}
	e.Result, _ = m.Result()
	e.Error, e.Code, e.NodeID = m.Failure()
	e.Data = m.FailureData()
	return e
}

// ChildEnded returns the input that reports the ending to the parent run, which waits under key.
func (e *Ending) ChildEnded(key string) machine.ChildEnded {
	text := e.Error
	if e.Status == machine.Cancelled {
		text = e.Reason
	}
	return machine.ChildEnded{
		Key: key, Status: e.Status, FinalState: e.State, Result: e.Result, Error: text, Code: e.Code, Data: e.Data, DefinitionHash: e.DefinitionHash,
	}
}

// TakeRecords fills e from the last records of a run, and reports whether they have its terminal event.
func (e *Ending) TakeRecords(records []history.Record) bool {
	found := false
	for i := len(records) - 1; i >= 0; i-- {
		p := &records[i].Payload
		switch name := records[i].Name; {
		case found && name == history.FailNode:
			e.Code, e.NodeID = p.Code, p.NodeID
			if e.NodeID == "" {
				e.NodeID = p.FailedNodeID
			}
			return true
		case found:
		case name == history.ExecutionCompleted && e.Status == machine.Completed:
			e.Result, e.Partials = p.Result.Value, p.Partial
			return true
		case name == history.ExecutionCancelled && e.Status == machine.Cancelled:
			e.Reason, e.KeepsTasks, e.Compensated = p.Reason, p.KeepTasks, p.Compensations
			return true
		case name == history.ExecutionFailed && e.Status == machine.Failed:
			e.Error, e.Code, e.Data, e.Compensated, found = p.Error, p.Code, p.Data, p.Compensations, true
			if e.NodeID = p.FailedNodeID; e.NodeID != "" {
				return true
			}
		}
	}
	return found
}
