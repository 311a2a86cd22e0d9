package machine_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestEveryTypeBegins shows that the machine begins nodes of every type: each completes, waits for something, or starts its branches.
func TestEveryTypeBegins(t *testing.T) {
	t.Parallel()
	for _, typ := range definition.NodeTypes() {
		t.Run(string(typ.Name), func(t *testing.T) {
			t.Parallel()
			d, id := enginetest.AroundExample(t, typ)
			p, findings := definition.Compile(d, definition.Options{})
			if p == nil {
				t.Fatal(findings)
			}
			m := machine.Start(p, machine.Config{ExecutionID: "x", MaxVisits: 100}, map[string]any{}, epoch)
			waits := map[string]bool{}
			for _, w := range m.Pending() {
				waits[w.NodeID] = true
			}
			switch {
			case m.Status().Terminal():
				if !typ.Instant {
					t.Errorf("the run ended at once: %s", m.Status())
				}
			case typ.Name == definition.Parallel:
				if !waits["a"] || !waits["b"] {
					t.Errorf("the branches wait at %v", waits)
				}
			case waits[id] == typ.Instant:
				t.Errorf("the node waits is %v, instant is %v", waits[id], typ.Instant)
			}
		})
	}
}
