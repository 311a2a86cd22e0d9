package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
)

// Every host passes the list of tools to its model at the beginning of every conversation, so every conversation pays for its
// size. The bounds leave room for a member or two; testdata/sizes.golden has the sizes.
const (
	maxToolBytes = 6200
	maxListBytes = 24_500
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
	fmt.Fprintf(&out, "%-26s %6s %6s %6s\n", "tool", "input", "output", "all")
	total := 0
	for _, tool := range list.Tools {
		n := size(tool)
		total += n
		fmt.Fprintf(&out, "%-26s %6d %6d %6d\n", tool.Name, size(tool.InputSchema), size(tool.OutputSchema), n)
		if n > maxToolBytes {
			t.Errorf("%s takes %d bytes, more than %d", tool.Name, n, maxToolBytes)
		}
		described(t, tool.Name+" arguments", tool.InputSchema)
		described(t, tool.Name+" answer", tool.OutputSchema)
	}
	fmt.Fprintf(&out, "%-26s %6s %6s %6d\n", "all", "", "", total)
	if total > maxListBytes {
		t.Errorf("the list takes %d bytes, more than %d", total, maxListBytes)
	}
	const file = "testdata/sizes.golden"
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if golden, err := os.ReadFile(file); err != nil || string(golden) != out.String() {
		t.Errorf("sizes differ from %s (run with -update to accept): %v\n%s", file, err, out.String())
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
