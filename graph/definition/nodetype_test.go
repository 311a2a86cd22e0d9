package definition_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/schemas"
)

// TestNodeTypes fails when a node type lacks a part: each has facts for every package that distinguishes types, help in the published
// schema, and an example that is valid as it stands.
func TestNodeTypes(t *testing.T) {
	t.Parallel()
	raw, err := jsonvalue.Decode(schemas.WorkflowDefinition())
	if err != nil {
		t.Fatal(err)
	}
	published := raw.(map[string]any)["$defs"].(map[string]any)
	for _, typ := range definition.NodeTypes() {
		t.Run(string(typ.Name), func(t *testing.T) {
			t.Parallel()
			if typ.Name.Info() != typ {
				t.Error("the type is not found by its name")
			}
			for part, missing := range map[string]bool{
				"Output": typ.Output == "", "Stub": typ.Stub == "", "Figure": typ.Figure == "",
				"Schema":                      typ.Schema == "" && (typ.Output == definition.OutputDeclared || typ.Output == definition.OutputInput),
				"Performer":                   typ.Executor != "" && (typ.Performer.Field == "" || typ.Performer.Noun == "" || typ.Performer.Role == "" || typ.Performer.Label == nil),
				"an executor, with Performer": typ.Executor == "" && typ.Performer.Field != "",
				"a stub, with an executor":    typ.Executor != "" && typ.Stub != definition.StubOutput,
			} {
				if missing {
					t.Errorf("the type has no %s", part)
				}
			}
			own, _ := published[string(typ.Name)].(map[string]any)
			properties, _ := own["properties"].(map[string]any)
			config, _ := properties["config"].(map[string]any)
			for what, text := range map[string]any{"node": own["description"], "config": config["description"]} {
				if text, _ := text.(string); len(text) < 12 {
					t.Errorf("the published schema does not describe the %s", what)
				}
			}

			doc, id := enginetest.AroundExample(t, typ)
			if vs := publishedSchema().Validate(doc.Value()); len(vs) > 0 {
				t.Errorf("the published schema rejects the example: %v", vs)
			}
			p, findings := definition.Compile(doc, definition.Options{Runnable: true, Protocol: true})
			if p == nil {
				t.Fatalf("the example does not compile\n%s", list(findings))
			}
			for _, f := range findings {
				if f.At.NodeID == id {
					t.Errorf("the example has the finding %s: %s", f.Code, f.Message)
				}
			}
			if l := typ.Performer.Label; l != nil && l(p.Node(id).Config) == "" {
				t.Error("the performer of the example has no label")
			}
		})
	}
}

// TestUnknownType shows that no fact of a known type is assumed of an unknown one.
func TestUnknownType(t *testing.T) {
	t.Parallel()
	if i := definition.Type("oracle").Info(); i.Name != "" || i.Attempted() || i.Instant || i.Output != "" || definition.Type("oracle").IsActivity() {
		t.Errorf("an unknown type has the facts %+v", i)
	}
}
