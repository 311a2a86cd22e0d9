package temporal

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/conformance"
	"github.com/workflows-engine/workflows-engine/graph"
)

// TestParityVectors runs the vectors that make calls. Others do not start a run.
func TestParityVectors(t *testing.T) {
	t.Parallel()
	report, err := conformance.Run(t.Context(), os.DirFS("../../conformance"), conformance.Options{
		NewEngine: func(o graph.Options) (graph.Engine, error) {
			e, _ := newTestEngine(t, Options{Activities: o.Activities, Delegates: o.Delegates, Workflows: o.Workflows, Branches: o.Branches})
			return e, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, v := range report.Vectors {
		if v.Kind != "parity" {
			continue
		}
		ran++
		if v.Status != conformance.Pass {
			var lines []string
			for _, p := range v.Problems {
				lines = append(lines, fmt.Sprint(p))
			}
			t.Errorf("%s: %s", v.ID, strings.Join(lines, "\n\t"))
		}
	}
	t.Logf("%d parity vectors", ran)
}
