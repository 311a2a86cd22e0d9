// Package schemas holds the JSON Schemas that the project publishes, for editors and for other tools.
//
// The engine's own verdicts come from graph/definition and internal/workflowtest, which say the same and explain it better; tests
// hold them together.
package schemas

import (
	"bytes"
	_ "embed"
)

//go:embed workflow-definition.schema.json
var workflowDefinition []byte

//go:embed workflow-test.schema.json
var workflowTest []byte

// WorkflowTest is the JSON Schema (draft 2020-12) of files with tests of a definition, as text. The slice is the caller's.
func WorkflowTest() []byte { return bytes.Clone(workflowTest) }

// WorkflowDefinition is the JSON Schema (draft 2020-12) of workflow definitions, as text. The slice is the caller's.
func WorkflowDefinition() []byte { return bytes.Clone(workflowDefinition) }
