package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
)

// Hosts pass the list of tools to their models at the beginning of every conversation, most of them names, descriptions and
// arguments alone, so every conversation pays for its size. testdata/sizes.golden has the sizes.
const (
	maxModelBytes  = 11_000 // what a model sees: names, descriptions and arguments
	maxOutputBytes = 10_000 // output schemas
)

func TestSizeOfTheToolList(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{})
	list, err := h.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	size := func(v any) int {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return len(text)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%-26s %6s %6s\n", "tool", "model", "output")
	models, outputs := 0, 0
	for _, tool := range list.Tools {
		model, output := size(map[string]any{"name": tool.Name, "description": tool.Description, "inputSchema": tool.InputSchema}), size(tool.OutputSchema)
		models, outputs = models+model, outputs+output
		fmt.Fprintf(&out, "%-26s %6d %6d\n", tool.Name, model, output)
		described(t, tool.Name+" arguments", tool.InputSchema)
		described(t, tool.Name+" answer", tool.OutputSchema)
	}
	fmt.Fprintf(&out, "%-26s %6d %6d\n", "all", models, outputs)
	if models > maxModelBytes || outputs > maxOutputBytes {
		t.Errorf("the tool list has %d bytes for models, the limit is %d, and %d bytes of output schemas, the limit is %d", models, maxModelBytes, outputs, maxOutputBytes)
	}
	const file = "testdata/sizes.golden"
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if golden, err := os.ReadFile(file); err != nil || string(golden) != out.String() {
		t.Errorf("%s differs (%v; go test ./internal/mcpserver -update rewrites it)\n%s", file, err, out.String())
	}
}

// described checks that every property has a description and that there are no references: some hosts pass schemas to models
// that cannot resolve them.
func described(t *testing.T, where string, schema any) {
	t.Helper()
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	if s["$ref"] != nil || s["$defs"] != nil {
		t.Errorf("%s has references", where)
	}
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		if text, _ := p.(map[string]any)["description"].(string); text == "" {
			t.Errorf("%s: %s has no description", where, name)
		}
		described(t, where+"."+name, p)
	}
	described(t, where+"[]", s["items"])
}

// TestToolsWhoseAnswersAreBoundedSaySo to hosts that would cut an answer that the model has asked for.
func TestToolsWhoseAnswersAreBoundedSaySo(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{})
	list, err := h.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		_, bounded := properties(tool.InputSchema)["answer_bytes"]
		if _, says := tool.Meta["anthropic/maxResultSizeChars"]; says != bounded {
			t.Errorf("%s: answer_bytes is %t, the hint %t", tool.Name, bounded, says)
		}
	}
}
