package graph_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

const mib = 1 << 20

// largeInputs are states of 1 MiB: one text, many small elements of a list, many small members.
func largeInputs() map[string]object {
	list, wide := []any{}, object{}
	for i := range 6000 {
		list = append(list, object{"id": float64(i), "name": "customer", "note": strings.Repeat("opened a ticket about an invoice. ", 4)})
		wide[fmt.Sprintf("member%04d", i)] = strings.Repeat("opened a ticket about an invoice. ", 5)
	}
	return map[string]object{"text": {"text": strings.Repeat("0123456789abcdef", mib/16)}, "list": {"list": list}, "members": wide}
}

// TestLargeStateThroughManyNodes carries 1 MiB of state through 20 nodes: the file stays near the size of the state,
// with one process that does it all and with a new one for every node.
func TestLargeStateThroughManyNodes(t *testing.T) {
	t.Parallel()
	var ids []string
	for i := range 20 {
		ids = append(ids, fmt.Sprintf("a%d", i))
	}
	d := linear(t, "large", ids...)
	for name, input := range largeInputs() {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %t", name, restart), func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "runs.db")
				var store *historysql.Store
				var r *graph.Runner
				stop := func() {
					if err := r.Close(); err != nil {
						t.Error(err)
					}
					if err := store.Close(); err != nil {
						t.Error(err)
					}
				}
				begin := func() {
					var err error
					if store, err = historysql.Open(t.Context(), path, historysql.Options{Synchronous: historysql.Normal}); err != nil {
						t.Fatal(err)
					}
					if r, err = graph.New(store, graph.Options{DefaultMode: machine.HostMediated}); err != nil {
						t.Fatal(err)
					}
				}
				begin()
				start(t, r, "r", d, input)
				var run *view.Run
				for i, id := range ids {
					if restart {
						stop()
						begin()
					}
					var err error
					run, err = r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: id, OK: true, Result: object{"last": i}})
					if err != nil {
						t.Fatal(err)
					}
				}
				want := object{"last": 19.0}
				for k, v := range input {
					want[k] = v
				}
				if run.Status != machine.Completed || !jsonvalue.Equal(run.FinalState, map[string]any(want)) {
					t.Errorf("the run is %s with another state", run.Status)
				}
				states := 0
				for _, rec := range records(t, store, "r") {
					if rec.Name == history.StateUpdated {
						states++
						for k, v := range input {
							if !jsonvalue.Equal(rec.Payload.State[k], v) {
								t.Fatalf("record %d has another %s", rec.Seq, k)
							}
						}
					}
				}
				if states != 21 {
					t.Errorf("%d states", states)
				}
				stop()
				info, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%.2f MiB", float64(info.Size())/mib)
				if info.Size() > 2*mib {
					t.Errorf("the file has %d bytes", info.Size())
				}
			})
		}
	}
}

// TestPositionsOfBranchesAreSmall: what branches have made of a large state is stored as what changed.
func TestPositionsOfBranchesAreSmall(t *testing.T) {
	t.Parallel()
	nodes, edges, entries := []string{startNode(), ""}, []string{"s p", "p e"}, []string{}
	for _, id := range []string{"a", "b", "c"} {
		nodes, edges, entries = append(nodes, tool(id), tool(id+"2")), append(edges, id+" "+id+"2", id+"2 e"), append(entries, id)
	}
	nodes[1] = fork("p", "all", entries...)
	d := workflowWith(t, "wide", `"state_schema":{"type":"object","properties":{"list":{"type":"array","reducer":"append"}}}`, append(nodes, endNode()), edges...)
	store := historymem.New()
	o := graph.Options{DefaultMode: machine.HostMediated}
	run := start(t, newRunner(t, store, o), "r", d, largeInputs()["list"])
	for len(run.Pending) > 0 {
		p := run.Pending[len(run.Pending)-1] // the last branch first: its script is held back
		var err error
		run, err = newRunner(t, store, o).SubmitActivity(t.Context(), graph.SubmitRequest{
			ExecutionID: "r", NodeID: p.NodeID, Span: p.Span, OK: true, Result: object{"list": []any{p.NodeID}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, data, err := store.Position(t.Context(), "r"); err != nil || len(data) > 20_000 {
			t.Errorf("a position of %d bytes, %v", len(data), err)
		}
	}
	list, _ := run.FinalState["list"].([]any)
	if got := fmt.Sprint(list[len(list)-6:]); run.Status != machine.Completed || len(list) != 6006 || got != "[a a2 b b2 c c2]" {
		t.Errorf("the run is %s with %d elements, the last %s", run.Status, len(list), got)
	}
}
