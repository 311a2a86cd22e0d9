package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
)

type historyOptions struct {
	from, limit          int64
	json, reveal, follow bool
}

// followInterval is how often --follow looks for new records; another process may be the one that writes them.
const followInterval = 300 * time.Millisecond

func newHistory(a *app) *cobra.Command {
	var o historyOptions
	cmd := &cobra.Command{
		Use:   "history ID",
		Short: "Print the records of a run",
		Long: `Print what a run has recorded: commands, which are its script, and events, which are what happened. Values of
members that look like secrets are masked; --reveal shows them.`,
		Example: `  workflows-engine history 3f0c8a
  workflows-engine history 3f0c8a --json --reveal > run.jsonl
  workflows-engine history 3f0c8a --from 120 --follow`,
		Args:              exactly("ID"),
		ValidArgsFunction: a.completeIDs(""),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.history(cmd.Context(), args[0], o) },
	}
	set := cmd.Flags()
	set.Int64Var(&o.from, "from", 1, "the first record, by its number")
	set.Int64Var(&o.limit, "limit", 0, "how many records (default all)")
	set.BoolVar(&o.json, "json", false, "print one JSON object a line")
	set.BoolVar(&o.reveal, "reveal", false, "show masked values")
	set.BoolVarP(&o.follow, "follow", "f", false, "go on printing new records until the run has ended")
	return cmd
}

// history prints the records of a run.
func (a *app) history(ctx context.Context, id string, o historyOptions) (err error) {
	if o.from < 0 || o.limit < 0 {
		return usage("--from and --limit must not be negative")
	}
	s, err := a.open(ctx, sessionOptions{})
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, s.close()) }()
	// An unknown run has no records, which is not the same as a run without any.
	if _, err := s.store.Execution(ctx, id); err != nil {
		return err
	}
	heading := true
	for {
		records, err := s.runner.History(ctx, graph.HistoryRequest{
			ExecutionID: id, FromSeq: o.from, Limit: int(o.limit), Reveal: o.reveal,
		})
		if err != nil {
			return err
		}
		if err := a.writeRecords(id, records, o.json, heading); err != nil {
			return err
		}
		heading = heading && len(records) == 0
		if len(records) > 0 {
			o.from = records[len(records)-1].Seq + 1
		}
		if o.follow {
			var more bool
			if more, err = a.more(ctx, s, id, o.from); err != nil {
				return err
			}
			if more {
				continue
			}
		}
		return nil
	}
}

// more waits until a run has a record with this number; false means that the run has ended and there is none.
func (a *app) more(ctx context.Context, s *session, id string, seq int64) (bool, error) {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		execution, err := s.store.Execution(ctx, id)
		if err != nil || execution.Seq >= seq {
			return err == nil, err
		}
		if execution.Phase.Terminal() {
			return false, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

func (a *app) writeRecords(id string, records []history.Record, asJSON, heading bool) error {
	if asJSON {
		return writeRecordLines(a.stdout, id, records)
	}
	return writeRecordTable(a.stdout, records, heading)
}

// recordJSON is a record as one line of JSON, with the names of the history table's columns.
type recordJSON struct {
	ExecutionID string          `json:"execution_id"`
	Seq         int64           `json:"seq"`
	Kind        string          `json:"kind"`
	Name        string          `json:"name"`
	CreatedAt   string          `json:"created_at"`
	Payload     json.RawMessage `json:"payload"`
}

func writeRecordLines(w io.Writer, id string, records []history.Record) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for _, r := range records {
		payload := r.Raw
		if payload == nil {
			payload = r.AppendPayload(nil, id)
		}
		err := encoder.Encode(recordJSON{
			ExecutionID: id, Seq: r.Seq, Kind: string(r.Kind), Name: string(r.Name),
			CreatedAt: history.FormatTimestamp(r.CreatedAt), Payload: payload,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func writeRecordTable(w io.Writer, records []history.Record, heading bool) error {
	var rows [][]string
	if heading {
		rows = append(rows, []string{"SEQ", "TIME", "KIND", "NAME", "NODE", "DETAIL"})
	}
	for _, r := range records {
		rows = append(rows, []string{
			fmt.Sprint(r.Seq), r.CreatedAt.UTC().Format("15:04:05.000"), string(r.Kind), string(r.Name),
			dash(r.Payload.NodeID), recordDetail(r),
		})
	}
	return writeTable(w, rows)
}

// detailWidth bounds the last column of the table.
const detailWidth = 80

// recordDetail says the most telling thing about a record in one line.
func recordDetail(r history.Record) string {
	p := r.Payload
	parts := []string{}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch r.Name {
	case history.ExecutionStarted:
		add("%s %s", p.WorkflowName, p.WorkflowVersion)
	case history.CompleteNode:
		parts = append(parts, outputText(p.Output))
	case history.StateUpdated:
		add("%s", short(p.State, detailWidth))
	case history.FailNode:
		add("%s: %s", p.Reason, p.Message)
	case history.ActivityRequested:
		add("%s", p.NodeType)
		if p.Attempt > 1 {
			add("attempt %d", p.Attempt)
		}
		if p.AgentID != "" {
			add("agent %s (%s)", p.AgentID, p.Protocol)
		}
	case history.ActivityCompleted, history.ExecutionCompleted:
		add("%s", short(p.Result.Value, detailWidth))
	case history.ActivityFailed, history.ExecutionFailed:
		add("%s", strings.TrimSpace(p.Code+" "+p.Error))
		if p.WillRetry {
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
	case history.DeliverSignal, history.SignalReceived:
		add("%s %s", p.SignalName, outputText(p.SignalPayload))
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
	return cut(strings.Join(parts, " "), detailWidth)
}
