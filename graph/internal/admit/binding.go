package admit

import (
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Caller is what a call after start may repeat: it is verified against the run if given, and not needed.
type Caller struct {
	// Definition must hash to the run's definition; nil skips the check. It is needed only for runs that another
	// engine began, whose definition is not stored.
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

// FirstRecords is how many records at the head of a history surely include ExecutionStarted and the first StateUpdated of a run
// whose entry is a start node.
const FirstRecords = 8

// MatchesFirstState compares an input with what a run of the reference engine recorded of it in its first records: the member
// names, and the first state if the start node wrote it (spec: execution, 9.6).
func MatchesFirstState(input map[string]any, records []history.Record) bool {
	entered := false
	for i := range records {
		p := &records[i].Payload
		switch records[i].Name {
		case history.ExecutionStarted:
			if p.InputKeys != nil && !sameKeys(p.InputKeys, input) {
				return false
			}
		case history.CompleteNode:
			// The start node has no output; any other entry node may have changed the state already.
			entered = len(p.Output) == 0
		case history.StateUpdated:
			if !entered {
				return true
			}
			for key, v := range input {
				if w, ok := p.State[key]; ok && !jsonvalue.Equal(v, w) {
					return false
				}
			}
			return true
		}
	}
	return true
}

func sameKeys(keys []string, m map[string]any) bool {
	return len(keys) == len(m) && !slices.ContainsFunc(keys, func(k string) bool {
		_, ok := m[k]
		return !ok
	})
}
