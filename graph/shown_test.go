package graph_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// TestAQuestionShowsWhatIsNew: where its author shows nothing, a question shows first what was written since the last one was answered, alike
// from memory, from a stored position and from a replay.
func TestAQuestionShowsWhatIsNew(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := workflow(t, "w", []string{startNode(), tool("a"), interrupt("ask"), tool("b"), tool("c"), interrupt("again"), endNode()},
		"s a", "a ask", "ask b", "b c", "c again", "again e")
	start(t, r, "r", d, object{"topic": "tides"})
	shows := func(want string) {
		t.Helper()
		o := graph.Options{DefaultMode: machine.HostMediated}
		copied, _ := moved(t, store, "r")
		for name, r := range map[string]*graph.Runner{"in memory": r, "from a position": newRunner(t, store, o), "replayed": newRunner(t, copied, o)} {
			if got := status(t, r, "r").Pending[0].Shown(1000); got != want {
				t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
			}
		}
	}
	submit(t, r, "r", "a", object{"draft": "one"})
	shows("New since the last question:\ndraft: one\n\nEarlier:\ntopic: tides")
	if _, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": false}}); err != nil {
		t.Fatal(err)
	}
	submit(t, r, "r", "b", object{"draft": "two", "length": 3.0})
	submit(t, r, "r", "c", object{"score": 7.0})
	shows("New since the last question:\nscore: 7\nlength: 3\ndraft: two\n\nEarlier:\nok: false\ntopic: tides")
}

// TestAQuestionInABranchShowsWhatIsNew: a branch shows what came before it and what it did; after the join that of all branches is new.
func TestAQuestionInABranchShowsWhatIsNew(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	d := workflow(t, "w", []string{startNode(), tool("a"), fork("p", "all", "x", "y"), tool("x"), tool("y"), interrupt("ask"), endNode()},
		"s a", "a p", "x ask", "y ask", "p ask", "ask e")
	start(t, r, "r", d, object{"topic": "tides"})
	submit(t, r, "r", "a", object{"draft": "one"})
	for _, name := range []string{"y", "x"} {
		pending := status(t, r, "r").Pending
		at := slices.IndexFunc(pending, func(p view.Pending) bool { return p.NodeID == name })
		req := graph.SubmitRequest{ExecutionID: "r", NodeID: name, Span: pending[at].Span, OK: true, Result: object{"of_" + name: name}}
		if _, err := r.SubmitActivity(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	if got := status(t, r, "r").Pending[0].Shown(1000); !strings.HasPrefix(got, "New since the last question:\nof_y: y\nof_x: x\ndraft: one\n\n") {
		t.Errorf("shown:\n%s", got)
	}
}
