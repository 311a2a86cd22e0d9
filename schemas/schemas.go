// Package schemas holds the JSON Schemas that the project publishes, for editors and for other tools.
//
// The engine's own verdict about a definition comes from graph/definition, which says the same and explains it better; a
// test holds the two together.
package schemas

import (
	"bytes"
	_ "embed"
)

//go:embed workflow-definition.schema.json
var workflowDefinition []byte

// WorkflowDefinition is the JSON Schema (draft 2020-12) of workflow definitions, as text. The slice is the caller's.
func WorkflowDefinition() []byte { return bytes.Clone(workflowDefinition) }
