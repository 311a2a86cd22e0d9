package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

type object = map[string]any

// workflow defines nodes and the edges between them, each as "source target".
func workflow(t *testing.T, name string, nodes []string, edges ...string) *definition.Document {
	t.Helper()
	text := fmt.Sprintf(`{"document":{"schema":"urn:test","name":%q,"version":"1"},"state_schema":{"type":"object"},"nodes":[`, name)
	for i, node := range nodes {
		if i > 0 {
			text += ","
		}
		text += node
	}
	text += `],"edges":[{"source":"__start__","target":"s"}`
	for _, edge := range edges {
		var source, target string
		if _, err := fmt.Sscan(edge, &source, &target); err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf(`,{"source":%q,"target":%q}`, source, target)
	}
	return enginetest.Define(t, text+"]}")
}

func startNode() string { return `{"id":"s","type":"start"}` }
func endNode() string   { return `{"id":"e","type":"end","config":{"output_mapping":"."}}` }

func tool(id string) string {
	return fmt.Sprintf(`{"id":%q,"type":"tool_call","config":{"server":"x","tool":%q}}`, id, id)
}

// linear defines a workflow of tool calls, one after another.
func linear(t *testing.T, name string, ids ...string) *definition.Document {
	t.Helper()
	nodes, edges, last := []string{startNode()}, []string{}, "s"
	for _, id := range ids {
		nodes, edges, last = append(nodes, tool(id)), append(edges, last+" "+id), id
	}
	return workflow(t, name, append(nodes, endNode()), append(edges, last+" e")...)
}

func interrupt(id string) string {
	return fmt.Sprintf(`{"id":%q,"type":"interrupt","config":{"prompt":"well?","resume_schema":{"type":"object"}}}`, id)
}

func subworkflow(id, ref string) string {
	return fmt.Sprintf(`{"id":%q,"type":"subworkflow","config":{"workflow_ref":%q,"input_mapping":{}}}`, id, ref)
}

type resolver func(ref, pin string) (*definition.Document, error)

func (f resolver) ResolveWorkflow(_ context.Context, ref, pin string) (*definition.Document, error) {
	return f(ref, pin)
}

func newRunner(t *testing.T, store history.Store, o graph.Options) *graph.Runner {
	t.Helper()
	return enginetest.Closing(t, enginetest.Must(graph.New(store, o)))
}

func start(t *testing.T, r *graph.Runner, id string, d *definition.Document, input object) *view.Run {
	t.Helper()
	run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Input: input})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func submit(t *testing.T, r *graph.Runner, id, node string, result object) {
	t.Helper()
	if _, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: id, NodeID: node, OK: true, Result: result}); err != nil {
		t.Fatal(err)
	}
}

func records(t *testing.T, store history.Store, id string) []history.Record {
	t.Helper()
	rs, err := store.Read(t.Context(), id, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

func wantCode(t *testing.T, err error, code problem.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("error %v, want %s", err, code)
	}
}
