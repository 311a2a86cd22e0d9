package admit

import (
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Caller holds the optional arguments that are verified against the run of a call.
type Caller struct {
	// Definition must hash to the run's definition; nil skips the check.
	Definition *definition.Document
	// Input must equal the run's input if InputSet.
	Input    map[string]any
	InputSet bool
	// Mode changes the run's mode for requests made from now on; "" keeps it.
	Mode machine.Mode
}

// SameDefinition rejects, with the code, a definition other than the run's.
func SameDefinition(e *history.Execution, d *definition.Document, code problem.Code) error {
	if d == nil || e.DefinitionHash == "" || d.Hash() == e.DefinitionHash {
		return nil
	}
	return problem.New(code, "the definition differs from the definition of run %q", e.ID).
		WithPlace(problem.Place{ExecutionID: e.ID}).
		WithHint("Leave the definition out, or send the definition with hash %s.", e.DefinitionHash)
}

// OtherInput returns the error for an input other than the run's.
func OtherInput(executionID string, code problem.Code) error {
	return problem.New(code, "the input differs from the input of run %q", executionID).
		WithPlace(problem.Place{ExecutionID: executionID}).
		WithHint("Leave the input out, or send the original input.")
}
