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
