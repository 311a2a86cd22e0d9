package graph_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestTheLastAnswerSentTwice: where nothing is asked any more, an answer without the id of its question is refused, and told to be the one
// that is recorded, by whom and where; with the id it is a repetition. Another answer is told what was recorded, and is no repetition.
func TestTheLastAnswerSentTwice(t *testing.T) {
	t.Parallel()
	for name, after := range map[string][]string{"the run waits": {tool("work"), endNode()}, "the run has ended": {endNode()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, store := host(t, graph.Options{})
			edges := []string{"s ask", "ask e"}
			if len(after) > 1 {
				edges = []string{"s ask", "ask work", "work e"}
			}
			d := workflow(t, "w", append([]string{startNode(), interrupt("ask")}, after...), edges...)
			id := start(t, r, "r", d, nil).Pending[0].ID
			req := graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}}
			if _, err := r.Resume(as(t, "ann"), req); err != nil {
				t.Fatal(err)
			}
			before := len(records(t, store, "r"))
			_, err := r.Resume(as(t, "bob"), req)
			wantCode(t, err, problem.InvalidResumePayload)
			e, _ := problem.As(err)
			recorded, _ := e.Details["recorded"].(object)
			if e.Details["repeated"] != true || recorded["by"] != "ann 1 (test)" || !strings.Contains(e.Hint, "This answer was recorded before by ann 1 (test), at ") {
				t.Errorf("%v\n%s", e.Details, e.Hint)
			}
			req.InterruptID = id
			if run, err := r.Resume(as(t, "bob"), req); err != nil || !run.Repeated {
				t.Errorf("with the id: %v", err)
			}
			_, err = r.Resume(as(t, "bob"), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": false}})
			if e, _ := problem.As(err); e == nil || e.Details["repeated"] != nil || e.Details["recorded"] == nil {
				t.Errorf("another answer: %v", err)
			}
			if n := len(records(t, store, "r")); n != before {
				t.Errorf("%d records, %d before", n, before)
			}
		})
	}
}
