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

// writeRecordLines prints records, one JSON object a line; ended are the attempts that they end, by seq, which say what
// performed them, how long it took, and for how many tokens.
func writeRecordLines(w io.Writer, id string, records []history.Record, ended map[int64]*attempt) error {
	for i := range records {
		r := &records[i]
		line := append(jsonvalue.Ordered{{"execution_id", id}}, runjson.Record(r)...)
		if r.Raw == nil {
			line.Put("payload", jsonvalue.Raw(r.AppendPayload(nil, id)))
		} else {
			line.Put("payload", jsonvalue.Raw(r.Raw))
		}
		if t := ended[r.Seq]; t != nil {
			line.Put("activity", encodeAttempt(t))
		}
		if err := writeLine(w, line); err != nil {
			return err
		}
	}
	return nil
}

// recordHeading is the first row of the table of records.
func recordHeading() [][]string { return [][]string{{"SEQ", "TIME", "KIND", "NAME", "NODE", "DETAIL"}} }

// recordRows are the rows of records in that table.
func recordRows(records []history.Record, ended map[int64]*attempt, states *stateTrail, width int) (rows [][]string) {
	for _, r := range records {
		rows = append(rows, []string{
			fmt.Sprint(r.Seq), r.CreatedAt.UTC().Format("15:04:05.000"), string(r.Kind), string(r.Name),
			dash(r.Payload.NodeID), recordDetail(r, ended[r.Seq], states, width),
		})
	}
	return rows
}

// actorWidth leaves room for what else is said of a record.
const actorWidth = 40

func actorText(a *history.Actor) string { return cut(a.String(), actorWidth) }

// detailWidth bounds the last column of the table, unless everything is shown.
const (
	detailWidth = 80
	wholeWidth  = math.MaxInt
)

// shownOutput is the output of a node, or a payload, in a width; "" for an empty one.
func shownOutput(output map[string]any, width int) string {
	if len(output) == 0 {
		return ""
	}
	if width == wholeWidth {
		return short(output, width)
	}
	return outputText(output)
}

// recordDetail says the most telling thing about a record in one line of a width. t is the attempt that it ends, or nil. Of a state it
// says what has changed, or with wholeWidth all.
func recordDetail(r history.Record, t *attempt, states *stateTrail, width int) string {
	p := r.Payload
	parts := []string{}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if t != nil {
		add("[%s]", t.factsText())
	}
	if p.Actor != nil {
		add("[by %s]", actorText(p.Actor))
	}
	if p.AgentStep != nil {
		add("%s", stepDetail(&r, width))
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
			add("[caught by %s, goes on at %s]", p.CaughtBy, p.Target)
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
