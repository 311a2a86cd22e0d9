// Package schemas holds the JSON Schemas that the project publishes, for editors and for other tools.
//
// The schema of definitions is generated from the shapes that graph/definition checks: go test ./schemas -update. Tests hold the
// schemas of tests, agents and webhooks together with their readers.
package schemas

import (
	"bytes"
	_ "embed"
)

//go:embed workflow-definition.schema.json
var workflowDefinition []byte

//go:embed workflow-test.schema.json
var workflowTest []byte

//go:embed agents.schema.json
var agents []byte

//go:embed webhooks.schema.json
var webhooks []byte

// Webhooks is the JSON Schema (draft 2020-12) of lists of webhook targets, as text. The slice is the caller's.
func Webhooks() []byte { return bytes.Clone(webhooks) }

// Agents is the JSON Schema (draft 2020-12) of lists of agents that run inside the engine, as text. The slice is the caller's.
func Agents() []byte { return bytes.Clone(agents) }

// WorkflowTest is the JSON Schema (draft 2020-12) of files with tests of a definition, as text. The slice is the caller's.
func WorkflowTest() []byte { return bytes.Clone(workflowTest) }

// WorkflowDefinition is the JSON Schema (draft 2020-12) of workflow definitions, as text. The slice is the caller's.
func WorkflowDefinition() []byte { return bytes.Clone(workflowDefinition) }
