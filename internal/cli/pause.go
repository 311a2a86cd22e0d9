package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// limitFlags are the flags that set the limits which a run can fail at.
var limitFlags = map[problem.Code]string{
	problem.StepBudgetExceeded: "--max-visits", problem.RecordLimitExceeded: "--max-records",
	problem.ByteLimitExceeded: "--max-bytes", problem.PendingLimitExceeded: "--max-pending",
}

// summarize says in one line how a run ended or where it stands.
func (a *app) summarize(run *view.Run) {
	took := timeline.Elapsed(run.UpdatedAt.Sub(run.CreatedAt))
	switch run.Status {
	case machine.Completed:
		fmt.Fprintf(a.stderr, "%s run %s in %s\n", a.paint.good("completed"), run.ExecutionID, took)
	case machine.Failed:
		code := run.ErrorCode
		if code != "" {
			code = " " + code
		}
		fmt.Fprintf(a.stderr, "%s%s run %s: %s\n", a.paint.bad("failed"), code, run.ExecutionID, run.Error)
		if run.ErrorNodeID != "" {
			fmt.Fprintf(a.stderr, "  at: node %s\n", plainCell(run.ErrorNodeID))
		}
		if run.ErrorData != nil {
			fmt.Fprintf(a.stderr, "  data: %s\n", errorData(run))
		}
		a.summarizeRollback(run)
	case machine.Cancelled:
		reason := run.Reason
		if reason != "" {
			reason = ": " + reason
		}
		fmt.Fprintf(a.stderr, "%s run %s%s\n", a.paint.wait("cancelled"), run.ExecutionID, reason)
		a.summarizeRollback(run)
	case machine.Running:
		fmt.Fprintf(a.stderr, "%s run %s while it was running\n", a.paint.wait("left"), run.ExecutionID)
	default:
		phase := runjson.Phase(run.Status)
		if phase == history.PhaseRunning { // it waits for a time
			fmt.Fprintf(a.stderr, "%s run %s\n", a.paint.wait("paused"), run.ExecutionID)
			return
		}
		fmt.Fprintf(a.stderr, "%s run %s (%s)\n", a.paint.wait("paused"), run.ExecutionID, phase)
	}
}

// maxErrorData bounds what is shown of the data of a failure.
const maxErrorData = 1 << 10

// errorData shows what the failure of a run carries, "" if that is nothing.
func errorData(run *view.Run) string {
	if run.ErrorData == nil {
		return ""
	}
	return plainCell(problem.Clip(string(jsonvalue.Canonical(history.RedactValue(run.ErrorData))), maxErrorData))
}

// summarizeRollback prints that the run was rolled back before it ended, if it was.
func (a *app) summarizeRollback(run *view.Run) {
	if run.Compensated > 0 {
		fmt.Fprintf(a.stderr, "  rollback: %s\n", rolledBackText(run))
	}
}

// explainPause says what the run waits for, and prints the command that ends the wait, ready to be pasted.
func (a *app) explainPause(run *view.Run, s *session) {
	p := awaited(run)
	if p == nil {
		a.explainTime(run, s)
		return
	}
	switch p.Kind {
	case machine.WaitInterrupt:
		a.describeInterrupt(p)
	case machine.WaitSignal:
		fmt.Fprintf(a.stderr, "  %s waits for the signal %q\n  %s\n", plainCell(p.NodeID), p.SignalName, payloadText)
	default:
		fmt.Fprintf(a.stderr, "  %s (%s) is to be performed by the host\n", waiterText(p), p.NodeType)
	}
	if !p.Deadline.IsZero() {
		fmt.Fprintf(a.stderr, "  %s\n", deadlineText(p, a.now()))
	}
	if run.Lacks != nil {
		fmt.Fprintf(a.stderr, "  %s\n", lackText(run.Lacks))
	}
	if s.config.Store == config.Memory {
		fmt.Fprintln(a.stderr, "  the run was kept in memory and is lost now; use --store sqlite, or give --resume and --signal to run")
		return
	}
	fmt.Fprintf(a.stderr, "continue with:\n  %s\n", s.continuation(run, p))
}

// payloadText says what JSON stands for in the command that sends a signal: no object would do for every workflow.
const payloadText = "put what the signal brings for JSON, {} for nothing: it is merged into the state"

// waiterText names the node of a wait, and the item of a map.
func waiterText(p *view.Pending) string {
	if p.Items == 0 {
		return plainCell(p.NodeID)
	}
	return fmt.Sprintf("%s, item %d of %d", plainCell(p.NodeID), p.Item+1, p.Items)
}

// explainTime is explainPause for a run that continues by itself, or would in a process that has what it needs.
func (a *app) explainTime(run *view.Run, s *session) {
	if run.Lacks != nil {
		fmt.Fprintf(a.stderr, "  %s\n", lackText(run.Lacks))
	}
	for _, p := range run.Pending {
		if !p.Due.IsZero() {
			fmt.Fprintf(a.stderr, "  %s waits until %s\n", plainCell(p.NodeID), p.Due.UTC().Format(time.RFC3339))
			break
		}
	}
	fmt.Fprintf(a.stderr, "continue with:\n  %s\n", s.command("recover", run.ExecutionID))
}

// lackText says what is missing here to continue a run, and who continues it.
func lackText(l *view.Lack) string {
	if l.Host {
		return fmt.Sprintf("node %s, which may follow, needs %s, which this command lacks: another process performs it%s, or a host if you answer with --mode host_mediated",
			plainCell(l.NodeID), l.Missing, settingText(l))
	}
	at := ""
	if l.NodeID != "" {
		at = "node " + plainCell(l.NodeID) + ": "
	}
	return fmt.Sprintf("%sthis command lacks %s; it leaves the run to a process that has it%s", at, l.Missing, settingText(l))
}

// settingText returns the process that has what is missing, "" if that is not known.
func settingText(l *view.Lack) string {
	if l.Setting == "" {
		return ""
	}
	return ", such as " + program + " worker with " + commandHint(l.Setting, "")
}

// maxShown bounds what the terminal shows beside a question, in bytes.
const maxShown = 8 << 10

// shownText is what is shown beside a question, without what acts on a terminal. Of a state that nobody has chosen to show, what looks like a
// secret is hidden.
func shownText(p *view.Pending) string {
	shown := *p
	shown.State, _ = history.DefaultRedaction().Value(p.State).(map[string]any)
	return plain(shown.Shown(maxShown))
}

// shows reports whether something is shown beside a question that is no question of an agent.
func shows(p *view.Pending) bool { return !agentsteps.AsksPerson(p.Show) && p.Shown(1) != "" }

func indented(text, by string) string { return by + strings.ReplaceAll(text, "\n", "\n"+by) }

func (a *app) describeInterrupt(p *view.Pending) {
	prompt := p.Prompt
	if prompt == "" {
		prompt = p.PromptRef
	}
	fmt.Fprintf(a.stderr, "  %s asks: %s\n", plainCell(p.NodeID), promptText(prompt))
	if calls := agentsteps.Approval(p.Show); calls != nil {
		writeCalls(a.stderr, calls, "    ")
		return
	}
	if shows(p) {
		fmt.Fprintf(a.stderr, "%s\n", indented(shownText(p), "    "))
	}
	if rows := describeMembers(p.ResumeSchema); len(rows) > 0 && !takesWords(p) {
		// Standard error has nowhere to report a failed write to.
		_ = writeTable(a.stderr, rows)
	}
}

// promptText is a question as it is shown: the lines after the first are indented, so that they are not taken for others' output.
func promptText(prompt string) string {
	var lines []string
	for line := range strings.Lines(prompt) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n    ")
}

// continuation returns the line of the command that ends one wait, with an example where an answer is needed.
func (s *session) continuation(run *view.Run, p *view.Pending) string {
	name, operands := "submit", []string{run.ExecutionID, p.NodeID}
	var flags []string
	switch p.Kind {
	case machine.WaitInterrupt:
		// The id lets the command answer this question alone, however often it is repeated.
		name, operands, flags = "resume", operands[:1], []string{"--payload", example(p.ResumeSchema)}
		if p.ID != "" {
			flags = append(flags, "--interrupt", p.ID)
		}
	case machine.WaitSignal:
		name, operands[1], flags = "signal", p.SignalName, []string{"--payload", "JSON"}
		if p.ID != "" {
			flags = append(flags, "--idempotency-key", p.ID)
		}
	default:
		if p.Span != nil {
			flags = append(flags, "--branch", p.Span.BranchName)
		}
		if p.Items > 0 {
			flags = append(flags, "--idempotency-key", p.IdempotencyKey) // which says of which item
		}
		schema, _ := p.OutputSchema.(map[string]any)
		flags = append(flags, "--result", example(schema))
	}
	return shellword.Command([]string{program, name}, operands, slices.Concat(flags, s.repeat)...)
}

func example(schema map[string]any) string { return string(jsonvalue.Canonical(exampleObject(schema))) }
