package cli

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestGraphFits: on a terminal the lines of a drawing are broken where they are too long, and nothing is left out.
func TestGraphFits(t *testing.T) {
	t.Parallel()
	draw := func(columns int) string {
		a, stdout, stderr := newTestApp(t, nil, noon)
		a.columns = func() int { return columns }
		if got := a.execute(t.Context(), []string{"graph", "../../examples/document-review/document-review.workflow.yaml"}); got != exitOK {
			t.Fatalf("exit status %d: %s", got, stderr)
		}
		return stdout.String()
	}
	requireGolden(t, "graph", draw(60))
	long := draw(0)
	for columns := 20; columns <= 200; columns++ {
		shown := wrapped(long, columns)
		if got, want := strings.Fields(shown), strings.Fields(long); !slices.Equal(got, want) {
			t.Errorf("%d columns: got\n%s\nwant\n%s", columns, got, want)
		}
		requireFits(t, shown, columns)
	}
}

// TestGraphOfARunOfAnotherProgram: a program that lets interrupts stand in branches has begun the run.
func TestGraphOfARunOfAnotherProgram(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	store := enginetest.Must(historysql.Open(t.Context(), path, historysql.Options{}))
	runner := enginetest.Must(graph.New(store, graph.Options{AllowInterruptInBranch: true}))
	_, err := runner.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: enginetest.Define(t, `
document: { schema: s, name: w, version: 1.0.0 }
state_schema: { type: object }
nodes:
  - { id: begin, type: start }
  - { id: both, type: parallel, config: { join: all, branches: [{ name: a, entry: ask }, { name: b, entry: nap }] } }
  - { id: ask, type: interrupt, config: { prompt: Yes or no, resume_schema: { type: object } } }
  - { id: nap, type: wait, config: { kind: duration, duration: 1h } }
  - { id: finish, type: end }
edges:
  - { source: __start__, target: begin }
  - { source: begin, target: both }
  - { source: both, target: finish }
  - { source: ask, target: finish }
  - { source: nap, target: finish }
`)})
	for _, err := range []error{err, runner.Close(), store.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	a, stdout, stderr := newTestApp(t, nil, noon)
	if status := a.execute(t.Context(), []string{"graph", "r", "--db", path}); status != exitOK || !strings.Contains(stdout.String(), "ask (interrupt) → finish   [now]\n") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
}
