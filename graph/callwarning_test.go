package graph_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// warned returns the message of the warning with a code, "" if there is none.
func warned(run *graph.Run, code problem.Code) string {
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
	if run = enginetest.Must(r.Start(t.Context(), begin)); !strings.Contains(warned(run, problem.ModeKept), `keeps its mode "in_process"`) {
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

// TestABranchThatFailsTheRunIsNoted: once a branch has failed that every join around it needs, answers say that the run can only
// fail, while the branches before it go on.
func TestABranchThatFailsTheRunIsNoted(t *testing.T) {
	t.Parallel()
	nested := func(outer, inner string) []string {
		return []string{startNode(), fork("p", outer, "o", "q"), tool("o"), fork("q", inner, "ra", "rb", "rc"), tool("ra"), tool("rb"), tool("rc"), tool("z"), endNode()}
	}
	for name, c := range map[string]struct {
		nodes []string
		edges string
		fails bool
	}{
		"all":        {[]string{startNode(), fork("q", "all", "ra", "rb", "rc"), tool("ra"), tool("rb"), tool("rc"), tool("z"), endNode()}, "s q", true},
		"any":        {[]string{startNode(), fork("q", "any", "ra", "rb", "rc"), tool("ra"), tool("rb"), tool("rc"), tool("z"), endNode()}, "s q", false},
		"all in all": {nested("all", "all"), "s p", true},
		"all in any": {nested("any", "all"), "s p", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := host(t, graph.Options{Branches: machine.Concurrent})
			edges := []string{c.edges, "q z", "ra z", "rb z", "rc z", "z e"}
			if c.edges == "s p" {
				edges = []string{c.edges, "p e", "o z", "q z", "ra z", "rb z", "rc z", "z e"}
			}
			run := start(t, r, "r", workflow(t, "fan", c.nodes, edges...), nil)
			for _, p := range run.Pending {
				if p.NodeID == "rb" {
					run = submitSpan(t, r, p, "NO_NET")
				}
			}
			for _, run := range []*graph.Run{run, status(t, r, "r")} {
				text := warned(run, problem.RunWillFail)
				if c.fails != strings.Contains(text, `branch "b_rb" of "q" has failed at node "rb"`) || c.fails != strings.HasSuffix(text, ": no luck") {
					t.Errorf("%s: %q", run.Status, text)
				}
				for _, w := range run.Warnings {
					if !strings.Contains(w.Hint, `fork it before node "rb"`) || !strings.Contains(w.Hint, "dropped: b_rc") {
						t.Errorf("hint: %s", w.Hint)
					}
				}
			}
		})
	}
}
