package page

import (
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	runview "github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
)

// TestStateOfRowAndRun: a run has the same state in a list as on its page.
func TestStateOfRowAndRun(t *testing.T) {
	t.Parallel()
	at := func(kind machine.WaitKind, status machine.Status) *runview.Run {
		return &runview.Run{Status: status, Pending: []runview.Pending{{WaitInfo: machine.WaitInfo{Kind: kind}}}}
	}
	for name, tt := range map[string]struct {
		row  history.Execution
		run  *runview.Run
		want string
	}{
		"timer":       {history.Execution{Phase: history.PhaseRunning, Waits: []history.Wait{{Kind: history.WaitTimer, Due: time.Unix(1, 0)}}}, at(machine.WaitTimer, machine.AwaitingTimer), "waits for a time"},
		"back-off":    {history.Execution{Phase: history.PhaseRunning, Waits: []history.Wait{{Kind: history.WaitBackoff}}}, at(machine.WaitBackoff, machine.AwaitingTimer), "waits for a time"},
		"queued":      {history.Execution{Phase: history.PhaseRunning, Waits: []history.Wait{{Kind: history.WaitBackoff, Queued: true}}}, at(machine.WaitBackoff, machine.Running), "running"},
		"activity":    {history.Execution{Phase: history.PhaseRunning, Waits: []history.Wait{{Kind: history.WaitActivity}}}, at(machine.WaitActivity, machine.Running), "running"},
		"agent":       {history.Execution{Phase: history.PhaseRunning, Waits: []history.Wait{{Kind: history.WaitActivity, ExternalTask: "t"}}}, at(machine.WaitDelegate, machine.AwaitingTimer), "running"},
		"subworkflow": {history.Execution{Phase: history.PhaseRunning, Waits: []history.Wait{{Kind: history.WaitTimer}, {Kind: history.WaitSubworkflow}}}, at(machine.WaitChild, machine.AwaitingChild), "runs a subworkflow"},
		"question":    {history.Execution{Phase: history.PhaseInterrupted, Waits: []history.Wait{{Kind: history.WaitInterrupt}}}, at(machine.WaitInterrupt, machine.Interrupted), "needs an answer"},
		"end":         {history.Execution{Phase: history.PhaseFailed}, &runview.Run{Status: machine.Failed}, "failed"},
	} {
		if row, run := fragment.RowState(&tt.row), fragment.RunState(tt.run); row != run || run.Word != tt.want {
			t.Errorf("%s: %q in a list, %q on the page, want %q", name, row.Word, run.Word, tt.want)
		}
	}
}

// TestHintOfAMissingExecutor: a setting that is set already is to be extended, one that is not is to be set.
func TestHintOfAMissingExecutor(t *testing.T) {
	t.Parallel()
	s := browse(t, func(o *Options) { o.Located = func(setting string) string { return setting + " (mcp.json)" } }).page
	for want, l := range map[string]*runview.Lack{
		`Add MCP server "blog" to MCP_CONFIG (mcp.json) and start this process again, or start a worker that has it.`: {Missing: `MCP server "blog"`, Setting: "MCP_CONFIG", Partial: true},
		"Set MCP_CONFIG and start this process again, or start a worker that has it.":                                 {Missing: "an executor for tool_call nodes", Setting: "MCP_CONFIG"},
		"A process that has it continues the run: start a worker with workflows-engine worker.":                       {Missing: "a definition"},
	} {
		m := &fragment.Run{}
		if s.notices(m, &runview.Run{Lacks: l}); len(m.Notices) != 1 || m.Notices[0].Hint != want {
			t.Errorf("%v, want %q", m.Notices, want)
		}
	}
}

// TestRowOfAnOverdueTimer: a timer that no process has fired is overdue, not in the future.
func TestRowOfAnOverdueTimer(t *testing.T) {
	t.Parallel()
	for word, due := range map[string]time.Time{"retry of a overdue since ": time.Now().Add(-time.Hour), "retry of a until ": time.Now().Add(time.Hour)} {
		out := row(&history.Execution{Phase: history.PhaseRunning, Waits: []history.Wait{{Kind: history.WaitBackoff, NodeID: "a", Due: due}}})
		if !strings.HasPrefix(out.WaitsFor, word) {
			t.Errorf("%q, want %q", out.WaitsFor, word)
		}
	}
}
