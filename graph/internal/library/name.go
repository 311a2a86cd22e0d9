package library

import "github.com/workflows-engine/workflows-engine/graph/machine"

// WorkflowName is how a node names the workflow of its subworkflow. Version is the definition hash to which its run has bound the
// name, or "" if it has not.
type WorkflowName struct{ Ref, Pin, Version string }

// NameOf returns the name of the workflow that an effect starts.
func NameOf(e *machine.ChildEffect) WorkflowName {
	return WorkflowName{e.WorkflowRef, e.VersionPin, e.Version}
}
