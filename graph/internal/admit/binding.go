package admit

import (
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Caller is what a call after start may repeat: it is verified against the run if given, and not needed.
type Caller struct {
	// Definition must hash to the run's definition; nil skips the check.
	Definition *definition.Document
	// Input must equal the run's input if InputSet.
	Input    map[string]any
	InputSet bool
	// Mode changes the run's mode for requests made from now on; "" keeps it.
	Mode machine.Mode
}

// SameDefinition refuses, with the code, a definition that is not the one that a run is bound to.
func SameDefinition(e *history.Execution, d *definition.Document, code problem.Code) error {
	if d == nil || e.DefinitionHash == "" || d.Hash() == e.DefinitionHash {
		return nil
	}
	return problem.New(code, "the definition given is not the one that run %q was started with", e.ID).
		WithPlace(problem.Place{ExecutionID: e.ID}).
		WithHint("Leave the definition out, or send the one with hash %s.", e.DefinitionHash)
}

// OtherInput is the refusal of an input that is not the one that a run was started with.
func OtherInput(executionID string, code problem.Code) error {
	return problem.New(code, "the input given is not the one that run %q was started with", executionID).
		WithPlace(problem.Place{ExecutionID: executionID}).
		WithHint("Leave the input out, or send the original one.")
}
