package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
)

// liveRun is what the view remembers of one run.
type liveRun struct {
	depth   int
	nodes   map[string]nodeFacts
	width   int // of the longest node id
	started map[visit]time.Time
	attempt map[visit]int
}

// visit names one visit of a node in a run.
type visit struct {
	node   string
	number int
}

// run returns what is remembered of a run. A run that began before the view did is learnt from its projection.
func (v *liveView) run(id string) *liveRun {
	run := v.runs[id]
	if run == nil {
		run = &liveRun{started: map[visit]time.Time{}, attempt: map[visit]int{}}
		// What cannot be read is not displayed.
		execution, _ := v.store.Execution(context.Background(), id)
		run.depth, run.nodes = execution.Depth, nodesOf(context.Background(), v.store, execution.DefinitionHash)
		for node := range run.nodes {
			run.width = max(run.width, min(len(node), 28))
		}
		v.runs[id] = run
	}
	return run
}

// show prints the line of a record, if it has one.
func (v *liveView) show(id string, r history.Record) {
	run, p := v.run(id), r.Payload
	at := visit{p.NodeID, p.Visit}
	switch r.Name {
	case history.ExecutionStarted:
		v.header(run, id, p)
	case history.NodeScheduled:
		run.started[at] = r.CreatedAt
	case history.ActivityRequested:
		if p.ExternalTask != "" {
			v.line(run, r, v.paint.wait("…"), "task "+cut(p.ExternalTask, outputWidth)+" at agent "+p.AgentID)
			return
		}
		run.attempt[at] = p.Attempt
	case history.ActivityCompleted:
		text := short(v.redaction.Or().Value(p.Result.Value), outputWidth)
		if tokens := tokensText(p.Usage); tokens != "" {
			text = tokens + "  " + text
		}
		v.line(run, r, v.paint.good("✓"), text)
	case history.ActivityFailed:
		v.failedAttempt(run, r)
	case history.CompleteNode:
		// Activities have had their line when the outcome came, parallel blocks when they joined.
		kind := definition.Type(run.nodes[p.NodeID].nodeType)
		if !kind.IsActivity() && kind != definition.AgentDelegate && kind != definition.Parallel {
			v.line(run, r, v.paint.good("✓"), outputText(v.redacted(p.Output)))
		}
	case history.FailNode:
		// A node without an id failed for a reason outside of it; an activity's attempt has had its line.
		if p.Reason != "activity_failed" && p.Reason != "delegate_failed" {
			v.line(run, r, v.paint.bad("✗"), cut(p.Message, messageWidth))
		}
		if p.CaughtBy != "" {
			v.line(run, r, v.paint.wait("↷"), "the failure is caught: goes on at "+p.Target)
		}
	case history.InterruptRaised:
		if p.ExternalTask != "" {
			v.line(run, r, v.paint.wait("?"), "the agent waits for an answer")
			return
		}
		v.line(run, r, v.paint.wait("?"), "waits for an answer")
	case history.SignalWaitStarted:
		v.line(run, r, v.paint.wait("?"), fmt.Sprintf("waits for the signal %q", p.SignalName))
	case history.SignalKept:
		v.line(run, r, v.paint.faint("+"), fmt.Sprintf("the signal %q is kept until it is waited for", p.SignalName))
	case history.TimerStarted:
		v.line(run, r, v.paint.wait("…"), "waits"+untilText(r))
	case history.MapStarted:
		v.line(run, r, v.paint.wait("…"), fmt.Sprintf("for each of %v items", p.Items.Value))
	case history.ParallelForked:
		v.line(run, r, v.paint.wait("…"), fmt.Sprintf("forks into %s (join %s)", strings.Join(p.BranchNames, ", "), p.Join))
	case history.ParallelJoined:
		v.line(run, r, v.paint.good("✓"), joinedText(p))
	case history.ParallelBranchCancelled:
		v.line(run, r, v.paint.faint("-"), "branch "+p.BranchName+" was not needed")
	}
}

// The widths of what a line shows at its end.
const (
	outputWidth  = 60
	messageWidth = 100
)

func (v *liveView) header(run *liveRun, id string, p history.Payload) {
	what := "run"
	if run.depth > 0 {
		what = "subworkflow"
	}
	fmt.Fprintf(v.out, "%s%s %s %s  %s\n", indent(run), what, v.paint.bold(p.WorkflowName), p.WorkflowVersion, v.paint.faint(id))
}

// line prints: glyph, node, type, time taken, attempt, text.
func (v *liveView) line(run *liveRun, r history.Record, glyph, text string) {
	p := r.Payload
	at := visit{p.NodeID, p.Visit}
	took := ""
	if began, ok := run.started[at]; ok && r.Name != history.ParallelForked && r.Name != history.ParallelBranchCancelled {
		took = elapsed(r.CreatedAt.Sub(began))
	}
	attempt := ""
	if n := run.attempt[at]; n > 1 {
		attempt = fmt.Sprintf("attempt %d  ", n)
	}
	facts := fmt.Sprintf("%-14s  %6s", run.nodes[p.NodeID].nodeType, took)
	if text = attempt + text; text == "" {
		facts = strings.TrimRight(facts, " ")
	} else {
		text = "  " + text
	}
	fmt.Fprintf(v.out, "%s%s %-*s  %s%s\n", indent(run), glyph, run.width, p.NodeID, v.paint.faint(facts), text)
}

func (v *liveView) failedAttempt(run *liveRun, r history.Record) {
	p := r.Payload
	text := cut(strings.TrimSpace(p.Code+" "+p.Error), messageWidth)
	if !p.WillRetry {
		v.line(run, r, v.paint.bad("✗"), text)
		return
	}
	next := "tried again"
	if p.Repair != nil {
		next = "sent back to be repaired"
	}
	if wait := p.RetryAt.Sub(r.CreatedAt); wait > 0 {
		next += " in " + elapsed(wait)
	}
	v.line(run, r, v.paint.wait("↻"), text+", "+next)
}

func indent(run *liveRun) string { return strings.Repeat("    ", run.depth) }

// outputText leaves out the empty object, which most nodes that are no activities put out.
func outputText(output map[string]any) string {
	if len(output) == 0 {
		return ""
	}
	return short(output, outputWidth)
}

// redacted masks what looks like a secret: what is shown live stays on screens and in logs.
func (v *liveView) redacted(output map[string]any) map[string]any {
	masked, _ := v.redaction.Or().Value(output).(map[string]any)
	return masked
}

func untilText(r history.Record) string {
	switch {
	case r.Payload.DueAt.IsZero():
		return ""
	case r.Payload.TimerKind == "until":
		return " until " + timeText(r.Payload.DueAt)
	}
	return " " + elapsed(r.Payload.DueAt.Sub(r.CreatedAt))
}

func joinedText(p history.Payload) string {
	if len(p.Winners) == 0 {
		return "joined"
	}
	return "joined with " + strings.Join(p.Winners, ", ")
}
