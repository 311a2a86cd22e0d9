package picture

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestEveryTypeIsDrawn shows that each figure of a node type has brackets of its own, and that each type's example is in the pictures.
func TestEveryTypeIsDrawn(t *testing.T) {
	t.Parallel()
	for _, typ := range definition.NodeTypes() {
		if _, ok := mermaidShapes[typ.Figure]; !ok {
			t.Errorf("%s: no brackets for the figure %q", typ.Name, typ.Figure)
		}
		d, id := enginetest.AroundExample(t, typ)
		p, findings := definition.Compile(d, definition.Options{})
		if p == nil {
			t.Fatal(findings)
		}
		for form, text := range map[string]string{"mermaid": Mermaid(p, nil), "svg": SVG(p, nil), "text": Text(p, nil)} {
			if !strings.Contains(text, id) {
				t.Errorf("%s: the node %q is not in the %s picture", typ.Name, id, form)
			}
		}
	}
}
