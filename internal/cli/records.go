package cli

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// writeRecordLines prints records, one JSON object a line, with the attempts that they end.
func writeRecordLines(w io.Writer, id string, records []history.Record, a *attempts) error {
	for i := range records {
		r := &records[i]
		line := append(jsonvalue.Ordered{{"execution_id", id}}, runjson.Record(r)...)
		if r.Raw == nil {
			line.Put("payload", jsonvalue.Raw(r.AppendPayload(nil, id)))
		} else {
			line.Put("payload", jsonvalue.Raw(r.Raw))
		}
		if t := a.ended(r.Seq); t != nil {
			line.Put("activity", a.encode(t))
		}
		if err := writeLine(w, line); err != nil {
			return err
		}
	}
	return nil
}

// recordHeading is the first row of the table of records.
func recordHeading() [][]string { return [][]string{{"SEQ", "TIME", "KIND", "NAME", "NODE", "DETAIL"}} }

// recordRows returns the rows of records in the table.
func recordRows(records []history.Record, a *attempts, states *stateTrail, width int) (rows [][]string) {
	for _, r := range records {
		rows = append(rows, []string{
			fmt.Sprint(r.Seq), r.CreatedAt.UTC().Format("15:04:05.000"), string(r.Kind), string(r.Name),
			dash(r.Payload.NodeID), a.recordDetail(r, states, width),
		})
	}
	return rows
}

// actorWidth leaves room for the rest of the line.
const actorWidth = 40

func actorText(a *history.Actor) string { return cut(a.String(), actorWidth) }

// detailWidth bounds the last column of the table, unless whole values are printed.
const (
	detailWidth = 80
	wholeWidth  = math.MaxInt
)

// shownOutput returns the output of a node, or a payload, cut to a width; "" for an empty one.
func shownOutput(output map[string]any, width int) string {
	if len(output) == 0 {
		return ""
	}
	if width == wholeWidth {
		return short(output, width)
	}
	return outputText(output)
}

// recordDetail describes a record in one line of a width. It shows the changes of a state, or with wholeWidth the whole state.
func (a *attempts) recordDetail(r history.Record, states *stateTrail, width int) string {
	p := r.Payload
	parts := []string{}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if t := a.ended(r.Seq); t != nil {
		add("[%s]", a.outcomeText(t))
	}
	if p.Actor != nil {
		add("[by %s]", actorText(p.Actor))
	}
	if e := a.places[r.Seq].Entry; e != nil {
		add("%s", stepDetail(&r, e, width))
		if p.Span != nil {
			add("[branch %s]", p.Span.BranchName)
		}
		return cut(strings.Join(parts, " "), width)
	}
	switch r.Name {
	case history.ExecutionStarted:
		add("%s %s", p.WorkflowName, p.WorkflowVersion)
		if p.ImportedBy != nil {
			add("[imported by %s %s]", actorText(p.ImportedBy), history.FormatTimestamp(p.ImportedAt))
		}
	case history.CompleteNode:
		parts = append(parts, shownOutput(p.Output, width))
	case history.StateUpdated:
		add("%s", states.text(p.State, width))
	case history.FailNode:
		if p.CaughtBy != "" {
			add("[caught by %s, continues at %s]", p.CaughtBy, p.Target)
		}
		add("%s: %s", p.Reason, p.Message)
	case history.NodeScheduled:
		if p.Compensates != "" {
			add("undoes %s", p.Compensates)
		}
	case history.RollbackStarted:
		add("%d to undo (%s)", p.Compensations, p.Reason)
	case history.MapStarted:
		add("%v items", p.Items.Value)
	case history.ActivityRequested:
		add("%s", p.NodeType)
		if p.Attempt > 1 {
			add("attempt %d", p.Attempt)
		}
		if p.AgentID != "" {
			add("agent %s (%s)", p.AgentID, p.Protocol)
		}
		if p.ExternalTask != "" {
			add("has task %s", p.ExternalTask)
		}
		if text := requestText(p.Request, width); text != "" {
			add("%s", text)
		}
	case history.ActivityCompleted, history.ExecutionCompleted:
		add("%s", short(p.Result.Value, width))
	case history.ActivityFailed, history.ExecutionFailed:
		add("%s", strings.TrimSpace(p.Code+" "+p.Error))
		if r.Name == history.ActivityFailed && p.Data != nil {
			add("%s", short(p.Data, width))
		}
		switch {
		case p.Repair != nil:
			add("sent back")
		case p.WillRetry:
			add("will be retried")
		}
	case history.StartParallel, history.ParallelForked:
		add("%s of %s", p.Join, strings.Join(p.BranchNames, ", "))
	case history.ParallelJoined:
		parts = append(parts, joinedText(p))
	case history.CancelParallelBranch, history.ParallelBranchCancelled:
		parts = append(parts, p.BranchName)
	case history.TimerStarted:
		parts = append(parts, strings.TrimSpace(untilText(r)))
	case history.StartSignalWait, history.SignalWaitStarted:
		parts = append(parts, p.SignalName)
	case history.InterruptResumed:
		parts = append(parts, shownOutput(p.SignalPayload, width))
	case history.DeliverSignal, history.SignalReceived, history.SignalKept:
		add("%s %s", p.SignalName, shownOutput(p.SignalPayload, width))
	case history.RaiseInterrupt, history.InterruptRaised:
		parts = append(parts, p.Prompt)
	case history.StartSubworkflow, history.SubworkflowStarted, history.SubworkflowCompleted:
		add("%s as %s", p.WorkflowRef, p.ChildExecutionID)
	case history.CancelExecution, history.ExecutionCancelled:
		parts = append(parts, p.Reason)
	}
	if p.Span != nil {
		add("[branch %s]", p.Span.BranchName)
	}
	return cut(strings.Join(parts, " "), width)
}
