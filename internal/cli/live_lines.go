package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// liveRun is the view's state of one run.
type liveRun struct {
	depth int
	root  string
	nodes map[string]nodeFacts
	width int // of the longest node id
}

func (r *liveRun) is(node string, kind definition.Type) bool {
	return r.nodes[node].nodeType == string(kind)
}

// run returns the state of a run. Records before the given one are read from the store.
func (v *liveView) run(id string, before int64) *liveRun {
	run := v.runs[id]
	if run == nil {
		run = &liveRun{root: history.Root(id)}
		// A run that cannot be read is shown without types and times.
		execution, _ := v.store.Execution(context.Background(), id)
		run.depth, run.nodes = execution.Depth, nodesOf(context.Background(), v.store, execution.DefinitionHash)
		v.tree.Define(id, storedProgram(context.Background(), v.store, execution.DefinitionHash))
		v.learn(id, before)
		for node := range run.nodes {
			run.width = max(run.width, min(len(plainCell(node)), 28))
		}
		v.runs[id] = run
	}
	return run
}

// learn reads the records of a run before the given one.
func (v *liveView) learn(id string, before int64) {
	for next := int64(1); next < before; {
		records, err := v.store.Read(context.Background(), id, next, int(min(before-next, recordPage)))
		if err != nil || len(records) == 0 {
			return
		}
		for i := range records {
			v.tree.Record(id, &records[i])
		}
		next = records[len(records)-1].Seq + 1
	}
}

// show prints the line of a record, if it has one.
func (v *liveView) show(id string, r history.Record) {
	run, p := v.run(id, r.Seq), r.Payload
	at := v.tree.Record(id, &r).Visit
	of := about(p.NodeID, at)
	switch r.Name {
	case history.ExecutionStarted:
		v.header(run, id, p)
	case history.NodeScheduled:
		if before := at.From; before != nil && before.Next == at.Node && run.is(before.Node, definition.Switch) {
			v.line(run, about(before.Node, before), v.paint.good("✓"), strings.TrimSpace("→ "+at.Node+"  "+before.Output))
		}
		if p.Compensates != "" {
			v.line(run, of, v.paint.wait("↶"), "undoes "+p.Compensates)
		}
	case history.RollbackStarted:
		v.line(run, of, v.paint.wait("↶"), fmt.Sprintf("rolling back: %d to undo", p.Compensations))
	case history.ActivityRequested:
		if p.ExternalTask != "" {
			v.line(run, of, v.paint.wait("…"), "task "+cut(p.ExternalTask, outputWidth)+" at agent "+p.AgentID)
		}
		if _, _, n, ok := p.Step(); ok && !p.DueAt.IsZero() {
			v.line(run, of, v.paint.wait("…"), "waits until "+timeText(p.DueAt)+", "+count(n, "step"))
		}
	case history.ActivityCompleted:
		text := short(v.redaction.Or().Value(p.Result.Value), outputWidth)
		if tokens := tokensText(p.Usage); tokens != "" {
			text = tokens + "  " + text
		}
		v.line(run, of, v.paint.good("✓"), text)
	case history.ActivityFailed:
		v.failedAttempt(run, of, r)
	case history.CompleteNode:
		// Activities got their line with the outcome, parallel blocks when they joined.
		// Switches get theirs when their target starts.
		kind := definition.Type(run.nodes[p.NodeID].nodeType)
		if !kind.Info().Attempted() && kind != definition.Parallel && kind != definition.Switch {
			v.line(run, of, v.paint.good("✓"), outputText(v.redacted(p.Output)))
		}
	case history.FailNode:
		// A failure without a node id has another cause; an activity's attempt got its line already.
		if p.Reason != "activity_failed" && p.Reason != "delegate_failed" {
			v.line(run, of, v.paint.bad("✗"), cut(p.Message, messageWidth))
		}
		if p.CaughtBy != "" {
			v.line(run, of, v.paint.wait("↷"), "caught; continuing at "+p.Target)
		}
	case history.InterruptRaised:
		if p.ExternalTask != "" {
			v.line(run, of, v.paint.wait("?"), "the agent waits for an answer")
			return
		}
		v.line(run, of, v.paint.wait("?"), "waits for an answer")
	case history.SignalWaitStarted:
		v.line(run, of, v.paint.wait("?"), fmt.Sprintf("waits for the signal %q", p.SignalName))
	case history.SignalKept:
		v.line(run, of, v.paint.faint("+"), fmt.Sprintf("the signal %q is kept for a later wait", p.SignalName))
	case history.TimerStarted:
		v.line(run, of, v.paint.wait("…"), "waits"+untilText(r))
	case history.MapStarted:
		v.line(run, of, v.paint.wait("…"), fmt.Sprintf("for each of %v items", p.Items.Value))
	case history.ParallelForked:
		v.line(run, of, v.paint.wait("…"), fmt.Sprintf("forks into %s (join %s)", strings.Join(p.BranchNames, ", "), p.Join))
	case history.ParallelJoined:
		v.line(run, of, v.paint.good("✓"), joinedText(p))
	case history.ParallelBranchCancelled:
		v.line(run, of, v.paint.faint("-"), "branch "+p.BranchName+" not needed")
	case history.ExecutionCompleted, history.ExecutionFailed, history.ExecutionCancelled:
		delete(v.runs, id) // a worker prints any number of runs
		v.tree.Forget(id)
	}
}

// The widths of the text at the end of a line.
const (
	outputWidth  = 60
	messageWidth = 100
)

func (v *liveView) header(run *liveRun, id string, p history.Payload) {
	kind := "run"
	if run.depth > 0 {
		kind = "subworkflow"
	}
	v.named = run.root
	fmt.Fprintf(v.out, "%s%s %s %s  %s\n", indent(run), kind, v.paint.bold(plainCell(p.WorkflowName)), plainCell(p.WorkflowVersion), v.paint.faint(id))
}

// nameRun prints a header if the last line was of another root and the view shows several.
func (v *liveView) nameRun(run *liveRun) {
	if !v.several || v.named == run.root {
		return
	}
	root, _ := v.store.Execution(context.Background(), run.root) // without names if it cannot be read
	v.header(&liveRun{root: run.root}, run.root, history.Payload{WorkflowName: root.DefinitionName, WorkflowVersion: root.DefinitionVersion})
}

// subject is the node and visit of a line.
type subject struct {
	node, took string
	visit      *timeline.Visit // nil if it is not known
}

func about(node string, v *timeline.Visit) subject {
	s := subject{node: node, visit: v}
	if v != nil && !v.Began.IsZero() && !v.Ended.IsZero() {
		s.took = timeline.Elapsed(v.Took(v.Ended))
	}
	return s
}

// line prints: glyph, node, type, time taken, item, attempt, text.
func (v *liveView) line(run *liveRun, of subject, glyph, text string) {
	v.nameRun(run)
	if of.visit != nil {
		if n := of.visit.AttemptNumber(); n > 1 {
			text = fmt.Sprintf("attempt %d  %s", n, text)
		}
		if index, items := of.visit.Item(); items > 0 {
			text = fmt.Sprintf("item %d of %d  %s", index+1, items, text)
		}
	}
	facts := fmt.Sprintf("%-14s  %6s", run.nodes[of.node].nodeType, of.took)
	if text = strings.TrimSpace(text); text == "" {
		facts = strings.TrimRight(facts, " ")
	} else {
		text = "  " + text
	}
	text = plainCell(text)
	fmt.Fprintf(v.out, "%s%s %-*s  %s%s\n", indent(run), glyph, run.width, plainCell(of.node), v.paint.faint(facts), text)
}

func (v *liveView) failedAttempt(run *liveRun, of subject, r history.Record) {
	p := r.Payload
	text := cut(strings.TrimSpace(p.Code+" "+p.Error), messageWidth)
	if !p.WillRetry {
		v.line(run, of, v.paint.bad("✗"), text)
		return
	}
	next := "retried"
	if p.Repair != nil {
		next = "sent back for repair"
	}
	if wait := p.RetryAt.Sub(r.CreatedAt); wait > 0 {
		next += " in " + timeline.Elapsed(wait)
	}
	if of.visit != nil && !of.visit.Began.IsZero() {
		of.took = timeline.Elapsed(of.visit.Took(r.CreatedAt))
	}
	v.line(run, of, v.paint.wait("↻"), text+", "+next)
}

// maxIndent is the deepest indentation, in levels of subworkflows.
const maxIndent = 16

func indent(run *liveRun) string { return strings.Repeat("    ", min(max(run.depth, 0), maxIndent)) }

// outputText returns "" for the empty object, the output of most nodes other than activities.
func outputText(output map[string]any) string {
	if len(output) == 0 {
		return ""
	}
	return short(output, outputWidth)
}

// redacted masks likely secrets: live output stays on screens and in logs.
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
	return " " + timeline.Elapsed(r.Payload.DueAt.Sub(r.CreatedAt))
}

func joinedText(p history.Payload) string {
	if len(p.Winners) == 0 {
		return "joined"
	}
	return "joined with " + strings.Join(p.Winners, ", ")
}
