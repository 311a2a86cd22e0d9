package graph_test

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// TestARunIsFoundByItsTitleAndLabels: they stand in the first record, a fork and a copy elsewhere have them too, and nothing else of the
// history differs from that of a run without them.
func TestARunIsFoundByItsTitleAndLabels(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := workflow(t, "w", []string{startNode(), tool("a"), interrupt("ask"), endNode()}, "s a", "a ask", "ask e")
	labels := map[string]string{"customer": "17", "urgent": ""}
	if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Title: "Refund 17", Labels: labels}); err != nil {
		t.Fatal(err)
	}
	labels["customer"] = "the caller's map"
	submit(t, r, "r", "a", nil)
	other, _ := moved(t, store, "r")
	if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", BeforeNode: "a", NewExecutionID: "f"}); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]history.Store{"r": store, "f": store, "r elsewhere": other} {
		id, _, _ := strings.Cut(name, " ")
		e, err := s.Execution(t.Context(), id)
		if err != nil || e.Title != "Refund 17" || !maps.Equal(e.Labels, map[string]string{"customer": "17", "urgent": ""}) {
			t.Errorf("%s: %q %v, %v", name, e.Title, e.Labels, err)
		}
	}
	if run := status(t, r, "r"); run.Title != "Refund 17" || run.Labels["customer"] != "17" || run.Pending[0].Prompt == "" {
		t.Errorf("status: %+v", run)
	}
	page, err := r.List(t.Context(), history.ListQuery{Labels: map[string]string{"customer": "17"}, Phase: history.PhaseInterrupted})
	if err != nil || len(page.Executions) != 1 || page.Executions[0].ID != "r" {
		t.Errorf("listed %+v, %v", page, err)
	}

	start(t, r, "p", d, nil)
	submit(t, r, "p", "a", nil)
	with, without := records(t, store, "r"), records(t, store, "p")
	caption := []byte(`,"title":"Refund 17","labels":{"customer":"17","urgent":""}`)
	if !bytes.Contains(with[0].Raw, caption) || len(with) != len(without) {
		t.Fatalf("%d and %d records, the first %s", len(with), len(without), with[0].Raw)
	}
	for i := range with {
		plain := bytes.ReplaceAll(bytes.Replace(with[i].Raw, caption, nil, 1), []byte(`"executionId":"r"`), []byte(`"executionId":"p"`))
		if string(plain) != string(without[i].Raw) {
			t.Errorf("record %d:\n%s\nwithout them:\n%s", i+1, plain, without[i].Raw)
		}
	}

	_, err = r.Start(t.Context(), graph.StartRequest{ExecutionID: "refused", Definition: d, Title: "two\nlines"})
	wantCode(t, err, problem.ValidationError)
}
