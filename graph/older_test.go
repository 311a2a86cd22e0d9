package graph_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// TestBlocksOfOlderReleasesGoOn: runs of releases in which a failed branch waited for the branches before it. A step has failed beside
// a question that is listed before it. They are verified without a finding, and go on as they began, also in a fork.
func TestBlocksOfOlderReleasesGoOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		waiting bool
		warned  bool
		caught  bool
	}{
		"plain-waiting": {waiting: true, warned: true},
		"sign-waiting":  {waiting: true, caught: true},
		"plain-ended":   {},
		"sign-ended":    {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, id := older(t, name)
			if !c.waiting {
				return
			}
			run := status(t, r, id)
			wantStatus(t, run, machine.Interrupted)
			if warned(run, problem.RunWillFail) != "" != c.warned {
				t.Errorf("warnings %v", run.Warnings)
			}
			fork, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: id, NewExecutionID: "fork", Seq: run.Seq})
			if err != nil {
				t.Fatal(err)
			}
			for _, run := range []*view.Run{run, fork} {
				id := run.ExecutionID
				run, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: id, Payload: map[string]any{"ok": true}})
				if err != nil {
					t.Fatal(err)
				}
				if !c.caught {
					if run.Status != machine.Failed || run.ErrorCode != "FRAUD" {
						t.Errorf("%s: %s %s", id, run.Status, run.ErrorCode)
					}
					continue
				}
				wantStatus(t, run, machine.AwaitingActivity)
				wantStatus(t, submit(t, r, id, "repair", nil), machine.Completed)
			}
			verifyAll(t, r)
		})
	}
}

// older imports a run that an older release has recorded, and verifies it.
func older(t *testing.T, name string) (r *graph.Runner, id string) {
	t.Helper()
	file, err := os.ReadFile("testdata/older/" + name + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	store := historymem.New()
	imported, err := graph.Import(t.Context(), store, bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	r = newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated})
	verifyAll(t, r)
	return r, imported.ExecutionID
}

func verifyAll(t *testing.T, r *graph.Runner) {
	t.Helper()
	if _, err := r.Verify(t.Context(), "", false, func(f history.Finding) { t.Errorf("verify: %+v", f) }); err != nil {
		t.Fatal(err)
	}
}

// TestFailuresOfOlderReleasesStay: failures that had no code, no data and other words are taken as they were recorded, and what a catch
// put into the state stays.
func TestFailuresOfOlderReleasesStay(t *testing.T) {
	t.Parallel()
	r, id := older(t, "failures-waiting")
	run := status(t, r, id)
	fork, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: id, NewExecutionID: "fork", Seq: run.Seq})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []*view.Run{run, fork} {
		end, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: run.ExecutionID, InterruptID: run.ExecutionID + ":ask#1", Payload: object{"ok": true}})
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, end, machine.Completed)
		for _, member := range []string{"number", "way", "raised", "join", "child"} {
			caught := end.FinalState[member].(object)
			if !sameJSON(caught, run.State[member]) || caught["data"] != nil || caught["code"] != "" && caught["code"] != "EXPRESSION_FAILED" {
				t.Errorf("%s: %s is %v, was %v", run.ExecutionID, member, caught, run.State[member])
			}
		}
	}
	verifyAll(t, r)
}

// TestFailuresHaveCodes: the same workflow from its beginning, as it fails now.
func TestFailuresHaveCodes(t *testing.T) {
	t.Parallel()
	r, id := older(t, "failures-waiting")
	run, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: id, NewExecutionID: "new", Seq: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range run.Pending {
		req := graph.SubmitRequest{ExecutionID: "new", NodeID: p.NodeID, Span: p.Span, Error: "broken", Code: "NO"}
		if _, err = r.SubmitActivity(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "new:sub:child", Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	run = settled(t, r, "new")
	wantStatus(t, run, machine.Interrupted)
	for member, want := range map[string]object{
		"number": {"code": "EXPRESSION_FAILED", "message": "the program `.word | tonumber` failed: tonumber cannot be applied to a string that is not a number (the state has the members \"word\")"},
		"way":    {"code": "SWITCH_NO_MATCH", "message": `no case of switch "way" matches, and it has no default`},
		"raised": {"code": "NO_STOCK", "message": "none left", "data": object{"raised": object{"code": "NO_STOCK", "message": "none left", "word": "wrong"}}},
		"join":   {"code": "JOIN_NOT_REACHED", "message": `parallel node "four" requires 1 of 2 branches to succeed, but 0 did`},
		"child":  {"code": "SUBWORKFLOW_CANCELLED", "message": "the subworkflow was cancelled: enough"},
	} {
		caught := run.State[member].(object)
		for name := range map[string]bool{"code": true, "message": true, "data": true} {
			if !sameJSON(caught[name], want[name]) {
				t.Errorf("%s: %s is %v, want %v", member, name, caught[name], want[name])
			}
		}
	}
	verifyAll(t, r)
}

// TestARunFailsWithItsAuthorsCode: what a program raises is the failure of the run, in every view of it, and reaches a parent's catch.
func TestARunFailsWithItsAuthorsCode(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	raise := `{"id":"a","type":"set_state","config":{"assignments":{"x":{"jq":"error({code:\"NO_STOCK\",message:\"none left\",of:.item})"}}}}`
	d := workflow(t, "child", []string{startNode(), raise, endNode()}, "s a", "a e")
	register(t, r, "child", d)
	want := object{"raised": object{"code": "NO_STOCK", "message": "none left", "of": "tea"}}
	check := func(run *view.Run) {
		t.Helper()
		if run.Status != machine.Failed || run.ErrorCode != "NO_STOCK" || run.Error != "none left" || run.ErrorNodeID != "a" || !sameJSON(run.ErrorData, want) {
			t.Errorf("%s %s %q at %s with %v", run.Status, run.ErrorCode, run.Error, run.ErrorNodeID, run.ErrorData)
		}
	}
	check(start(t, r, "r", d, object{"item": "tea"}))
	check(status(t, newRunner(t, store, graph.Options{}), "r")) // from the records alone
	parent := workflowWith(t, "parent", `"x-workflows-engine":{"uses":["catch"]}`, []string{
		startNode(), `{"id":"v","type":"subworkflow","config":{"workflow_ref":"child","input_mapping":{"item":"tea"}},"catch":[{"codes":["NO_STOCK"],"target":"e","as":"why"}]}`, endNode(),
	}, "s v", "v e")
	run := start(t, r, "p", parent, nil)
	if caught, _ := run.FinalState["why"].(object); run.Status != machine.Completed || !sameJSON(caught["data"], want) || caught["code"] != "NO_STOCK" {
		t.Errorf("%s %v", run.Status, run.FinalState)
	}
	verifyAll(t, r)
}
