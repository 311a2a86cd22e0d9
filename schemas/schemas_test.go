package schemas_test

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/agentfile"
	"github.com/workflows-engine/workflows-engine/internal/format"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/schemas"
)

func parse(t *testing.T, schema []byte) *jsonvalue.Node {
	t.Helper()
	n, problems := jsonvalue.Parse(schema, 0, 0)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return n
}

var update = flag.Bool("update", false, "rewrite the generated schema")

// TestWorkflowDefinitionIsGenerated compares the published schema of definitions with the shapes that the engine checks.
func TestWorkflowDefinitionIsGenerated(t *testing.T) {
	t.Parallel()
	const file = "workflow-definition.schema.json"
	want := format.Value(definition.JSONSchema())
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(schemas.WorkflowDefinition(), want) {
		t.Errorf("%s differs from the shapes of graph/definition; write it anew with go test ./schemas -update", file)
	}
}

// TestAgentsAreComposed compares the published schema of lists of agents with the schemas of the kinds of tools.
func TestAgentsAreComposed(t *testing.T) {
	t.Parallel()
	const file = "agents.schema.json"
	want := format.Value(agentfile.JSONSchema())
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(schemas.Agents(), want) {
		t.Errorf("%s differs from the kinds of tools in internal/agentfile; write it anew with go test ./schemas -update", file)
	}
}

func TestWorkflowDefinitionCompiles(t *testing.T) {
	t.Parallel()
	raw := parse(t, schemas.WorkflowDefinition()).Value().(map[string]any)
	if raw["$id"] != "https://agent-workflow.dev/schemas/workflow-definition.json" || raw["$schema"] != jsonschema.Dialect {
		t.Errorf("the schema's identity is contract, got %v and %v", raw["$id"], raw["$schema"])
	}
	if _, err := jsonschema.Compile(raw); err != nil {
		t.Error(err)
	}
}

// TestEveryPropertyTeaches wants a description beside every property that an author may write.
func TestEveryPropertyTeaches(t *testing.T) {
	t.Parallel()
	everyPropertyTeaches(t, schemas.WorkflowDefinition(), 80)
	everyPropertyTeaches(t, schemas.WorkflowTest(), 35)
	everyPropertyTeaches(t, schemas.Webhooks(), 9)
	everyPropertyTeaches(t, schemas.Agents(), 80)
	everyPropertyTeaches(t, schemas.MCPManifest(), 12)
	everyPropertyTeaches(t, schemas.StepCommands(), 8)
	everyPropertyTeaches(t, schemas.Tokens(), 6)
}

func everyPropertyTeaches(t *testing.T, schema []byte, atLeast int) {
	t.Helper()
	root := parse(t, schema)
	checked := 0
	var walk func(n *jsonvalue.Node, pointer string)
	walk = func(n *jsonvalue.Node, pointer string) {
		for _, m := range n.Members {
			at := pointer + "/" + m.Name
			if m.Name == "if" || m.Name == "oneOf" || m.Name == "examples" {
				continue // conditions and data, not descriptions of what to write
			}
			if m.Name == "properties" {
				for _, property := range m.Value.Members {
					checked++
					teaches(t, root, property, at+"/"+property.Name)
				}
			}
			walk(m.Value, at)
		}
		for _, e := range n.Elements {
			walk(e, pointer)
		}
	}
	walk(root, "")
	if checked < atLeast {
		t.Errorf("only %d properties were found", checked)
	}
}

func teaches(t *testing.T, root *jsonvalue.Node, property jsonvalue.Member, pointer string) {
	t.Helper()
	s := property.Value
	if ref := s.Get("$ref"); ref != nil {
		s = root.Lookup(strings.TrimPrefix(ref.Str, "#"))
	}
	if s.Get("const") != nil && property.Name == "type" {
		return // the node's own type; its meaning stands with the node
	}
	if d := s.Get("description"); d == nil || len(d.Str) < 12 {
		t.Errorf("%s has no description", pointer)
	}
}

func TestCallersOwnTheirCopy(t *testing.T) {
	t.Parallel()
	for _, schema := range []func() []byte{schemas.WorkflowDefinition, schemas.WorkflowTest, schemas.Agents, schemas.Webhooks, schemas.MCPManifest, schemas.StepCommands, schemas.Tokens} {
		schema()[0] = 'x'
		if schema()[0] != '{' {
			t.Error("one caller's change reaches another")
		}
	}
}
