package graph_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// TestValuesThatTakeTooLongToCheck: what cannot be checked is like what breaks the schema. A payload and an input are refused and can
// be corrected; a result and a state fail the run.
func TestValuesThatTakeTooLongToCheck(t *testing.T) {
	t.Parallel()
	costly := `{"type":"object","properties":{"a":{"items":{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"type":"null"},`, 150), ",") + `]}}}}`
	large := object{"a": slices.Repeat([]any{1.0}, 20_000)}
	wantText := func(text string) {
		t.Helper()
		if !strings.Contains(text, "cannot be checked") || !strings.Contains(text, "send fewer elements") {
			t.Errorf("the text is %.300s", text)
		}
	}

	r, _ := host(t, graph.Options{})
	ask := workflow(t, "ask", []string{startNode(), `{"id":"i","type":"interrupt","config":{"prompt":"?","resume_schema":` + costly + `}}`, endNode()}, "s i", "i e")
	wantStatus(t, start(t, r, "r", ask, nil), machine.Interrupted)
	_, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: large})
	wantCode(t, err, problem.InvalidResumePayload)
	wantText(err.Error())
	run, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"a": []any{nil}}})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, run, machine.Completed)

	r = newRunner(t, historymem.New(), graph.Options{})
	end := workflow(t, "out", []string{startNode(), `{"id":"e","type":"end","config":{"output_mapping":"{a}","output_schema":` + costly + `}}`}, "s e")
	run = start(t, r, "result", end, large)
	wantStatus(t, run, machine.Failed)
	if run.ErrorCode != string(problem.OutputSchemaViolation) || run.ErrorNodeID != "e" {
		t.Errorf("the code is %s, of node %s", run.ErrorCode, run.ErrorNodeID)
	}
	wantText(run.Error)

	made := workflowWith(t, "state", `"state_schema":`+costly, []string{startNode(), `{"id":"m","type":"set_state","config":{"assignments":{"a":{"jq":"[range(20000)]"}}}}`, endNode()}, "s m", "m e")
	run = start(t, r, "state", made, nil)
	wantStatus(t, run, machine.Failed)
	if run.ErrorCode != string(problem.StateInvalid) {
		t.Errorf("the code is %s", run.ErrorCode)
	}
	wantText(run.Error)

	checked := workflow(t, "in", []string{`{"id":"s","type":"start","config":{"input_schema":` + costly + `}}`, endNode()}, "s e")
	_, err = r.Start(t.Context(), graph.StartRequest{Definition: checked, ExecutionID: "input", Input: large})
	wantCode(t, err, problem.ValidationError)
	wantText(err.Error())
}
