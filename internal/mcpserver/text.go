package mcpserver

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

const (
	// maxTaskText and maxResultText bound a task and a result in the text, in bytes.
	maxTaskText, maxResultText = 2 << 10, 1 << 10
	// maxOwnText bounds the part of the state that only one entry sees.
	maxOwnText = 512
	// maxWaitLines is how many entries of pending the text names.
	maxWaitLines = 8
)

// inShort returns the lines after the headline: the task, the next call and the result. Only a small state is in the
// text.
func (s *server) inShort(run runView) (lines []string) {
	if run.Status == machine.Completed {
		text, _ := s.runDocument(run.ExecutionID, resultSuffix).Show(run.Result, maxResultText, "")
		return []string{"Result: " + string(text)}
	}
	if run.Status == machine.Failed {
		line := "Failed: " + run.Error
		if run.ErrorNodeID != "" {
			line = fmt.Sprintf("Failed at node %q: %s", run.ErrorNodeID, run.Error)
		}
		if run.ErrorCode != "" {
			line += " (" + run.ErrorCode + ")"
		}
		lines = rolledBack([]string{line}, run.Run)
		if stopped(run.Run) {
			return append(lines, "Next: "+stoppedHint)
		}
		if again, ok := s.again(run.Run); ok {
			lines = append(lines, again.lines()...)
		}
		return lines
	}
	if run.Status.Terminal() {
		if run.Reason != "" {
			lines = []string{"Reason: " + run.Reason}
		}
		return rolledBack(lines, run.Run)
	}
	for _, p := range run.Rollbacks {
		lines = append(lines, fmt.Sprintf("Rollback (%s): %d of %d undone; undoes %s.", p.Reason, p.Undone, p.Total, p.Undoing))
	}
	subject := run.actionable()
	told, unchanged, more := 0, 0, 0
	for _, p := range run.shown() {
		if _, seen := run.unchanged[p]; seen {
			unchanged++
			continue
		}
		if told == maxWaitLines {
			more++
			continue
		}
		told++
		line := fmt.Sprintf("Waits: %s at node %q", p.Kind, p.NodeID)
		if p.NodeType != "" {
			line = fmt.Sprintf("Waits: %s at node %q (%s)", p.Kind, p.NodeID, p.NodeType)
		}
		if p.Items > 0 {
			line += fmt.Sprintf(", item %d (of %d, counted from 0)", p.Item, p.Items)
		}
		if p.Steps > 0 {
			line += stepsText(p)
		}
		if p == subject {
			line += s.task(p)
		}
		if p.Host {
			line += s.own(run, p)
		}
		lines = append(lines, line)
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more.", more))
	}
	if unchanged > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more, unchanged.", unchanged))
	}
	for _, m := range run.Maps {
		lines = append(lines, fmt.Sprintf("Map at node %q: %d of %d items have ended, %d of them failed, %d are running.",
			m.NodeID, m.Succeeded+m.Failed, m.Items, m.Failed, m.Running))
	}
	for _, k := range run.KeptSignals {
		lines = append(lines, fmt.Sprintf("Kept for a later wait: %d of signal %q.", k.Count, k.Name))
	}
	if state := s.stateLine(run); state != "" && !run.sameState() {
		lines = append(lines, state)
	}
	return append(lines, s.next(run).lines()...)
}

// stepsText returns the progress of an executor with a journal.
func stepsText(p *view.Pending) string {
	agent, ok := agentsteps.StatusOf(p.FirstStep, p.Reconfigured, p.NewestStep, p.Totals)
	if !ok {
		return fmt.Sprintf(", %s of attempt %d recorded", count(p.Steps, "step"), max(p.Attempt, 1))
	}
	text := fmt.Sprintf(", agent %s in turn %d", problem.Clip(agent.Name, maxStepName), agent.Turn)
	if spent := timeline.SpentText(agent.Totals, agent.Budgets); spent != "" {
		text += ", " + spent
	}
	return text
}

// rolledBack adds that a run was rolled back before it ended.
func rolledBack(lines []string, run *view.Run) []string {
	if run.Compensated == 0 {
		return lines
	}
	return append(lines, fmt.Sprintf("The rollback is finished: %s made.", were(run.Compensated, "compensation")))
}

// were returns a number with its noun and verb.
func were(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " was"
	}
	return count(n, noun) + " were"
}

// maxStateNames is how many fields of the state the text names.
const maxStateNames = 12

// maxStateText is the largest state, in bytes, that the text shows as a whole: some hosts show their model only the text.
const maxStateText = 500

// stateLine describes the state in one line, "" if it is empty.
func (s *server) stateLine(run runView) string {
	names := jsonvalue.Keys(run.State)
	if len(names) == 0 {
		return ""
	}
	if jsonvalue.Size(run.State, maxStateText) <= maxStateText {
		return "State: " + s.opts.Redaction.String(string(jsonvalue.Canonical(s.opts.Redaction.Value(run.State))))
	}
	rest := ""
	if part, unchanged := run.before.since(run.State, run.now.members); len(unchanged) > 0 {
		if names, rest = jsonvalue.Keys(part), ", the rest is unchanged"; len(names) == 0 {
			return ""
		}
	}
	list := strings.Join(names[:min(len(names), maxStateNames)], ", ")
	if more := len(names) - maxStateNames; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return "State has " + problem.Excerpt(list, 500) + rest + ": workflow_status with read or select shows values."
}

// task returns the host's task as text.
func (s *server) task(p *view.Pending) string {
	var task any
	switch {
	case p.Kind == machine.WaitInterrupt:
		text := ": " + jsonvalue.FirstUnits(p.Prompt, maxTaskText)
		if calls, _ := s.shownCalls(p, maxTaskText); calls != nil {
			list := members{{"tool_calls", calls}}.Append(nil)
			return text + " tool_calls: " + string(list[len(`{"tool_calls":`):len(list)-1])
		}
		name, shown := "shown", shownText(p, maxTaskText)
		if p.Show != nil && !agentsteps.AsksPerson(p.Show) {
			name, shown = "show", p.Shown(maxTaskText)
		}
		if shown != "" {
			text += " " + name + ":\n  " + strings.ReplaceAll(shown, "\n", "\n  ") + "\n "
		}
		if p.ResumeSchema != nil {
			schema, _ := s.waitDocument(p).Show(p.ResumeSchema, maxTaskText, "/resume_schema")
			text += " resume_schema: " + string(schema)
		}
		return text
	case p.DelegateInput != nil:
		task = p.DelegateInput
	case p.Config != nil:
		task = p.Config
	default:
		return ""
	}
	text, _ := s.waitDocument(p).Show(task, maxTaskText, "/config")
	return ": " + string(text)
}

// own returns the part of the state that only this entry sees; without it, one item of a map looks like any other.
func (s *server) own(run runView, p *view.Pending) string {
	if p.ExecutionID != run.ExecutionID || run.State == nil {
		return ""
	}
	own := ownState(run, p)
	if len(own) == 0 {
		return ""
	}
	text, _ := s.waitDocument(p).Show(own, maxOwnText, "/state")
	return " It sees in the state: " + string(text)
}
