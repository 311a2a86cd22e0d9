// Package schemas holds the JSON Schemas that the project publishes, for editors and for other tools.
//
// go test ./schemas -update generates the schema of definitions from the shapes that graph/definition checks, and puts the schemas of the kinds
// of tools (internal/agentfile) into the schema of agents. The files of operators are read through their schemas (internal/document); a test
// compares the schema of files with tests with its reader. A text in errorMessage, which editors show too, describes the mistake.
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

//go:embed mcp-manifest.schema.json
var mcpManifest []byte

//go:embed step-commands.schema.json
var stepCommands []byte

//go:embed tokens.schema.json
var tokens []byte

// Tokens is the JSON Schema (draft 2020-12) of lists of bearer tokens of the HTTP API, as text. The slice is the caller's.
func Tokens() []byte { return bytes.Clone(tokens) }

// MCPManifest is the JSON Schema (draft 2020-12) of the operator's manifest of MCP servers, as text. The slice is the caller's.
func MCPManifest() []byte { return bytes.Clone(mcpManifest) }

// StepCommands is the JSON Schema (draft 2020-12) of lists of programs that perform steps, as text. The slice is the caller's.
func StepCommands() []byte { return bytes.Clone(stepCommands) }

// Webhooks is the JSON Schema (draft 2020-12) of lists of webhook targets, as text. The slice is the caller's.
func Webhooks() []byte { return bytes.Clone(webhooks) }

// Agents is the JSON Schema (draft 2020-12) of lists of agents that run inside the engine, as text. The slice is the caller's.
func Agents() []byte { return bytes.Clone(agents) }

// WorkflowTest is the JSON Schema (draft 2020-12) of files with tests of a definition, as text. The slice is the caller's.
func WorkflowTest() []byte { return bytes.Clone(workflowTest) }

// WorkflowDefinition is the JSON Schema (draft 2020-12) of workflow definitions, as text. The slice is the caller's.
func WorkflowDefinition() []byte { return bytes.Clone(workflowDefinition) }
