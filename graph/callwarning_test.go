package graph_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// warned returns the message of the warning with a code, "" if there is none.
func warned(run *view.Run, code problem.Code) string {
	for _, w := range run.Warnings {
		if w.Code == code {
			return w.Message
		}
	}
	return ""
}

// TestAModeThatIsNotTakenIsNoted: a call that names a mode which the run does not get says so.
func TestAModeThatIsNotTakenIsNoted(t *testing.T) {
	t.Parallel()
	r := newRunner(t, historymem.New(), graph.Options{Activities: activities.Stub{}})
	d := workflow(t, "modes", []string{startNode(), interrupt("i"), tool("a"), endNode()}, "s i", "i a", "a e")
	begin := graph.StartRequest{ExecutionID: "r", Definition: d, AllowExisting: true}
	run := enginetest.Must(r.Start(t.Context(), begin))
	if len(run.Warnings) != 0 {
		t.Errorf("first start: %v", run.Warnings)
	}
	if run = enginetest.Must(r.Start(t.Context(), begin)); len(run.Warnings) != 0 {
		t.Errorf("start again without a mode: %v", run.Warnings)
	}
	begin.Mode = machine.HostMediated
	if run = enginetest.Must(r.Start(t.Context(), begin)); !strings.Contains(warned(run, problem.ModeKept), `keeps mode "in_process"`) {
		t.Errorf("start again in another mode: %v", run.Warnings)
	}
	drive := graph.DriveRequest{ExecutionID: "r", Caller: graph.Caller{Mode: machine.HostMediated}}
	if run = enginetest.Must(r.Drive(t.Context(), drive)); warned(run, problem.ModeKept) == "" {
		t.Errorf("drive in another mode: %v", run.Warnings)
	}
	answer := graph.ResumeRequest{ExecutionID: "r", InterruptID: "r:i#1", Payload: map[string]any{"ok": true}, Caller: drive.Caller}
	if run = enginetest.Must(r.Resume(t.Context(), answer)); run.Status != machine.AwaitingActivity || len(run.Warnings) != 0 {
		t.Errorf("a resume that changes the mode: %s, %v", run.Status, run.Warnings)
	}
	answer.Mode = machine.InProcess
	if run = enginetest.Must(r.Resume(t.Context(), answer)); !run.Repeated || warned(run, problem.ModeKept) == "" {
		t.Errorf("a repeated resume in another mode: %v", run.Warnings)
	}
}

// TestTheFirstFailureDecidesAtOnce: a branch that every join around it needs fails the run at once, wherever it is listed. What the
// other branches wait for is no longer asked for, and no answer warns of a failure to come.
func TestTheFirstFailureDecidesAtOnce(t *testing.T) {
	t.Parallel()
	nested := func(outer, inner string) []string {
		return []string{startNode(), fork("p", outer, "o", "q"), tool("o"), fork("q", inner, "ra", "rb", "rc"), tool("ra"), tool("rb"), tool("rc"), tool("z"), endNode()}
	}
	flat := func(join string) []string {
		return []string{startNode(), fork("q", join, "ra", "rb", "rc"), tool("ra"), tool("rb"), tool("rc"), tool("z"), endNode()}
	}
	const catch = `,"catch":[{"codes":["*"],"target":"z"}]`
	caught := func(nodes []string) []string {
		for i, n := range nodes {
			if strings.Contains(n, `"id":"q"`) {
				nodes[i] = strings.TrimSuffix(n, "}") + catch + "}"
			}
		}
		return nodes
	}
	for name, c := range map[string]struct {
		nodes   []string
		edges   string
		pending string // "" for a run that has failed
	}{
		"all":                {flat("all"), "s q", ""},
		"all, caught":        {caught(flat("all")), "s q", "z"},
		"any":                {flat("any"), "s q", "ra rc"},
		"all in all":         {nested("all", "all"), "s p", ""},
		"all in all, caught": {caught(nested("all", "all")), "s p", "o"},
		"all in any":         {nested("any", "all"), "s p", "o"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := host(t, graph.Options{Branches: machine.Concurrent})
			edges := []string{c.edges, "q z", "ra z", "rb z", "rc z", "z e"}
			if c.edges == "s p" {
				edges = []string{c.edges, "p e", "o z", "q z", "ra z", "rb z", "rc z", "z e"}
				if c.pending == "o" && name != "all in any" { // a catch in a branch leads to where the branches join
					edges = []string{c.edges, "p z", "o z", "q z", "ra z", "rb z", "rc z", "z e"}
				}
			}
			run := start(t, r, "r", workflowWith(t, "fan", `"x-workflows-engine":{"uses":["catch"]}`, c.nodes, edges...), nil)
			for _, p := range run.Pending {
				if p.NodeID == "rb" {
					run = submitSpan(t, r, p, "NO_NET")
				}
			}
			for _, run := range []*view.Run{run, status(t, r, "r")} {
				var pending []string
				for _, p := range run.Pending {
					pending = append(pending, p.NodeID)
				}
				if strings.Join(pending, " ") != c.pending || len(run.Warnings) > 0 {
					t.Errorf("pending %v, warnings %v", pending, run.Warnings)
				}
				if failed := run.Status == machine.Failed && run.ErrorCode == "NO_NET" && run.ErrorNodeID == "rb"; failed != (c.pending == "") {
					t.Errorf("%s %s %s", run.Status, run.ErrorCode, run.ErrorNodeID)
				}
			}
			if _, err := r.Verify(t.Context(), "r", false, func(f history.Finding) { t.Errorf("verify: %+v", f) }); err != nil {
				t.Fatal(err)
			}
		})
	}
}
