package mcpserver

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/fleet"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// nextWaitMS is the wait_ms that next suggests for a run that continues by itself.
const nextWaitMS = 20_000

// next returns nextCall, or a status call if the server does not offer the tool of that call.
func (s *server) next(run runView) toolCall {
	next := nextCall(run)
	if !s.tools.has(next.tool) && !s.cardTools.has(next.tool) {
		return call("workflow_status", members{{"execution_id", run.ExecutionID}},
			"The run continues with "+next.tool+", which this server does not offer. Tell the user about the wait, and stop.")
	}
	return next
}

// nextCall returns the call that continues a run, with arguments to copy. An argument that the caller has to fill in is
// a placeholder, which is rejected as it is.
func nextCall(run runView) toolCall {
	p := run.actionable()
	switch {
	case p != nil:
		return answerTo(run, p)
	case run.asking.anyOpen(run.Run):
		return whilePersonIsAsked(run.Run)
	case run.lost:
		return sendDefinition(run)
	}
	note := "The run continues by itself."
	for _, p := range run.shown() {
		if isUnbound(p) {
			return sendDefinition(runView{Run: &view.Run{ExecutionID: p.ExecutionID, State: p.State}})
		}
	}
	switch first := runjson.First(run.Run); {
	case run.Lacks != nil:
		note = leftToOthers(run.Lacks)
	case first != nil && first.Limit != nil:
		note = "The run waits for " + fleet.LimitText(first.Limit) + "."
	case run.Ready != nil:
		note = "The run waits for " + fleet.ReadyText(run.Ready) + "."
		if run.Ready.Workers == 0 {
			note += " Tell the operator."
		}
	case first != nil && !first.Due.IsZero():
		if due := earliest(run.Run); due.Sub(run.Now) > longWait {
			return call("workflow_status", members{{"execution_id", run.ExecutionID}}, comeBack(due, run.Now))
		}
		note = "The run continues by itself at due_at; call then."
	}
	return call("workflow_status", members{{"execution_id", run.ExecutionID}, {"wait_ms", float64(nextWaitMS)}}, note)
}

// longWait is the shortest wait that a caller should not spend in a call.
const longWait = 5 * time.Minute

// earliest returns when the first timer of a run is due.
func earliest(run *view.Run) (due time.Time) {
	for _, p := range run.Pending {
		if !p.Due.IsZero() && (due.IsZero() || p.Due.Before(due)) {
			due = p.Due
		}
	}
	return due
}

// comeBack is the note of a call for a run that continues by itself at due.
func comeBack(due, now time.Time) string {
	left := due.Sub(now)
	in := count(int(math.Ceil(left.Minutes())), "minute")
	switch {
	case left > 48*time.Hour:
		in = count(int(math.Round(left.Hours()/24)), "day")
	case left > 2*time.Hour:
		in = count(int(math.Round(left.Hours())), "hour")
	}
	at := due.UTC().Format(time.RFC3339)
	return fmt.Sprintf("The run continues by itself at %s, in %s. Tell the user so and stop: do not wait or call before. Make this call after %s.", at, in, at)
}

// leftToOthers describes the process that can continue a run that this one cannot continue.
func leftToOthers(l *view.Lack) string {
	example := ""
	switch {
	case l.Setting != "" && l.Partial:
		example = ", such as workflows-engine worker with " + words.Translate(l.Setting) + " that names it"
	case l.Setting != "":
		example = ", such as workflows-engine worker with " + words.Translate(l.Setting)
	}
	missing := l.Missing
	if l.NodeID != "" {
		missing += fmt.Sprintf(" (node %q)", l.NodeID)
	}
	return fmt.Sprintf("This server lacks %s and leaves the run to a process that has it%s. If nothing changes within a minute, tell the operator.",
		missing, example)
}

// sendDefinition returns the call that sends the definition of a run.
func sendDefinition(run runView) toolCall {
	args := members{{"execution_id", run.ExecutionID}, {"allow_existing_execution_id", true}, {"definition", blankDefinition}}
	what := "its definition"
	why := "The definition of this run is not stored here"
	if run.Lacks != nil && run.Lacks.NodeID == "" {
		why, what = "This server lacks "+run.Lacks.Missing, "the same definition with a valid signature"
	}
	return call("workflow_start", args, why+". Send "+what+" to continue it.")
}

// answerTo returns the call that ends a wait.
func answerTo(run runView, p *view.Pending) toolCall {
	more := ""
	if n := run.actionableCount() - 1; n > 0 {
		more = fmt.Sprintf(" %d more pending, in any order.", n)
	}
	if run.node == "" && len(run.Pending)-len(run.unchanged) > maxFull {
		more += " Read brief entries in full: workflow_status with node_id."
	}
	args := members{}
	if isUnbound(p) {
		// The run's definition would be compared with that of the subworkflow's run, so that one is called itself.
		id := p.ExecutionID
		if id == "" {
			id = run.ExecutionID
		}
		args.Put("execution_id", id)
		args.Put("definition", blankDefinition)
		more += " Send the definition of the run, which is not stored here; it describes node_id."
	} else {
		args.Put("execution_id", run.ExecutionID)
	}
	if l := run.Lacks; l != nil && l.Host {
		more += fmt.Sprintf(" A later node needs %s (node %q), which this server lacks: another process performs it, or you, "+
			"with activity_execution_mode host_mediated in this call.", l.Missing, l.NodeID)
	} else if l != nil {
		more += fmt.Sprintf(" Node %q waits for a process that has %s, which this server lacks.", l.NodeID, l.Missing)
	}
	if run.willFail() {
		more += " But this run can only fail: see warnings."
	}
	args.Number("since_seq", run.Seq)
	switch p.Kind {
	case machine.WaitInterrupt:
		args.Text("interrupt_id", p.ID)
		return run.asking.answerCall(args, run.Run, p, more)
	case machine.WaitSignal:
		args.Text("signal_name", p.SignalName)
		args.Put("payload", blankPayload)
		args.Text("idempotency_key", p.ID) // the call, made twice, ends this wait alone
		return call("workflow_signal", args, "Call once the signal arrives, with its payload. Until then tell the user about the wait, and stop."+more)
	}
	args.Text("node_id", p.NodeID)
	if p.Span != nil && p.IdempotencyKey == "" { // the key names the branch
		args.Put("parallel_span", runjson.Span(p.Span))
	}
	args.Text("idempotency_key", p.IdempotencyKey)
	outcome := members{{"ok", true}, {"result", blankResult(p)}}
	outcome.Text("delegate_correlation_id", p.CorrelationID)
	args.Put("outcome", outcome)
	note := "Do it, then put the output into result."
	if p.MaxAttempts > 1 {
		switch left := p.MaxAttempts - p.Attempt; {
		case left > 0:
			note += fmt.Sprintf(" Attempt %d of %d: if you report a failure, %s left.", p.Attempt, p.MaxAttempts, remain(left))
		default:
			note += fmt.Sprintf(" Attempt %d, the last: a failure that you report fails the node.", p.Attempt)
		}
	}
	return call("workflow_submit_activity", args, note+more)
}

// remain returns the number of attempts left as text.
func remain(attempts int) string {
	if attempts == 1 {
		return "1 attempt is"
	}
	return strconv.Itoa(attempts) + " attempts are"
}

// toolCall is a call for the caller to make, with a note.
type toolCall struct {
	tool      string
	arguments members
	note      string
}

func call(tool string, args members, note string) toolCall { return toolCall{tool, args, note} }

func (c toolCall) members() members {
	return members{{"tool", c.tool}, {"arguments", c.arguments}, {"note", c.note}}
}

// lines returns the call as lines of an answer's text.
func (c toolCall) lines() []string {
	return []string{fmt.Sprintf("Next: %s %s", c.tool, c.arguments.Append(nil)), c.note}
}

// again returns the call that retries a failed run; ok is false without one.
func (s *server) again(run *view.Run) (c toolCall, ok bool) {
	if run.Status != machine.Failed || stopped(run) || !s.tools.has("workflow_fork") {
		return c, false
	}
	if retry := run.Lineage.Live; retry != "" {
		return call("workflow_status", members{{"execution_id", retry}}, "This run is its retry."), true
	}
	args, note := members{{"execution_id", run.ExecutionID}}, "Starts a new run before the failed node, or after the last result of its agent: a call that has a result is not repeated. definition corrects it."
	switch {
	case problem.Code(run.ErrorCode).IsLimit():
		note = "Continues in a new run from where this one ended. The operator must raise the limit first, or it fails again."
	case agentsteps.Spent(run.ErrorCode):
		args.Put("current_config", true)
		note = "Starts a new run, in which the agent continues. The operator must raise the agent's budget first, or it fails again."
	case agentsteps.Ended(run.ErrorCode):
		args.Put("anew", true)
		note = "Starts a new run, with the agent from its start: it cannot continue."
	case run.GoesOn.After != "":
		note = "Starts a new run, in which the agent " + run.GoesOn.String() + "."
	case run.Compensated > 0:
		note = "Starts a new run before the first node that was undone; definition corrects it."
	case run.ErrorNodeID == "":
		note = "Continues in a new run from where this one ended; definition corrects it."
	}
	return call("workflow_fork", args, note), true
}

// actionable returns the first entry that waits for the caller, preferably the one that the status names.
func (t runView) actionable() *view.Pending {
	if p := runjson.First(t.Run); p != nil && t.isActionable(p) && (t.node == "" || p.NodeID == t.node) {
		return p
	}
	for _, p := range t.shown() {
		if t.isActionable(p) {
			return p
		}
	}
	return nil
}

func (t runView) actionableCount() int {
	n := 0
	for i := range t.Pending {
		if t.isActionable(&t.Pending[i]) {
			n++
		}
	}
	return n
}

// isActionable reports whether the caller can act on an entry: the host is not asking the person about it.
func (t runView) isActionable(p *view.Pending) bool { return isActionable(p) && !t.asking.isOpen(p) }

func isActionable(p *view.Pending) bool {
	switch p.Kind {
	case machine.WaitInterrupt, machine.WaitSignal:
		return true
	case machine.WaitActivity, machine.WaitDelegate:
		return p.Host
	default:
		return false
	}
}
