package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

type historyOptions struct {
	from, limit          int64
	json, reveal, follow bool
	activities, full     bool
	noSteps              bool
	node                 string
}

// followInterval is how often --follow reads new records; another process may write them.
const followInterval = 300 * time.Millisecond

func newHistory(a *app) *cobra.Command {
	var o historyOptions
	cmd := &cobra.Command{
		Use:   "history ID",
		Short: "Print the records and attempts of a run",
		Long: `Print the records of a run: commands, which are its script, and events, which are facts. Below them
are the attempts of its activities and delegates: the node, the executor, the time it took, the tokens that a
model counted, and the error. --activities prints these alone. Values of members that look like secrets are masked;
--reveal shows them. DETAIL begins with the caller of a recorded call ([by …]), as the caller named itself. It shows
the changes of a state and the beginning of a request; --full and --json show both in full.

An executor that keeps a journal records the steps of an attempt: each is below its attempt, with the time from the request
to the step. --no-steps leaves them out, here and among the records. --node prints the records and attempts of one node alone.

TOOK is the time from the recorded request to the recorded outcome. An attempt that another process performed again after
its process died has one request, so TOOK includes the time between the two processes, as well as a host's own delay.`,
		Example: `  workflows-engine history order-17
  workflows-engine history order-17 --activities
  workflows-engine history order-17 --no-steps
  workflows-engine history order-17 --node refund
  workflows-engine history order-17 --from 12 --limit 1 --full
  workflows-engine history order-17 --json --reveal > run.jsonl
  workflows-engine history order-17 --from 120 --follow`,
		Args:              exactly("ID"),
		ValidArgsFunction: a.completeIDs(""),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.history(cmd.Context(), args[0], o) },
	}
	set := cmd.Flags()
	set.Int64Var(&o.from, "from", 1, "print records from this `number` on")
	set.Int64Var(&o.limit, "limit", 0, "print at most this `number` of records; 0 for all")
	set.BoolVarP(&o.activities, "activities", "a", false, "print only the attempts of activities and delegates")
	set.BoolVar(&o.noSteps, "no-steps", false, "leave out journal entries of attempts")
	set.StringVar(&o.node, "node", "", "print only records and attempts of this `node`")
	set.BoolVar(&o.full, "full", false, "print whole states and requests in DETAIL")
	set.BoolVar(&o.json, "json", false, "print one JSON object a line")
	set.BoolVar(&o.reveal, "reveal", false, "show masked values")
	set.BoolVarP(&o.follow, "follow", "f", false, "keep printing new records until the run has ended")
	return cmd
}

// history prints the records of a run.
func (a *app) history(ctx context.Context, id string, o historyOptions) error {
	switch {
	case o.from < 1:
		return usage("invalid value %d for --from", o.from).WithHint("Write the number of a record, from 1 on.")
	case o.limit < 0:
		return usage("invalid value %d for --limit", o.limit).WithHint("Write a number of records, or 0 for all.")
	}
	return a.with(ctx, sessionOptions{store: readOnlyStore, executors: optionalExecutors}, func(s *session) error {
		if o.follow && config.MigrationNote(s.store) != "" {
			return problem.New(problem.StoreReadOnly, "cannot follow a database of an older version: only a copy of it is read").
				WithHint("Leave out --follow, or migrate the database: %s.", shellword.Line(append([]string{program, "db", "migrate"}, s.sameStore...)...))
		}
		// An unknown run must not look like a run without records.
		execution, err := s.store.Execution(ctx, id)
		if err != nil {
			return err
		}
		tally := newAttempts(id, nodesOf(ctx, s.store, execution.DefinitionHash))
		tally.line.Define(id, storedProgram(ctx, s.store, execution.DefinitionHash))
		first := o.from
		states := &stateTrail{}
		if err := s.skip(ctx, id, first, tally, states); err != nil {
			return err
		}
		heading := true
		for next := first; ; {
			var table [][]string
			if heading {
				table = recordHeading()
			}
			for left := o.limit; ; {
				page := int64(recordPage)
				if o.limit > 0 {
					page = min(page, left)
				}
				records, err := s.engine.History(ctx, graph.HistoryRequest{ExecutionID: id, FromSeq: next, Limit: int(page), Reveal: o.reveal})
				if err != nil {
					return err
				}
				if len(records) == 0 {
					break
				}
				clear(tally.places)
				for i := range records {
					tally.record(&records[i])
				}
				switch {
				case o.activities:
				case o.json:
					err = writeRecordLines(a.stdout, id, o.shown(records), tally)
				default:
					table = append(table, o.rows(records, tally, states)...)
				}
				if err != nil {
					return err
				}
				heading, next = false, records[len(records)-1].Seq+1
				if left -= int64(len(records)); o.limit > 0 && left <= 0 {
					break
				}
			}
			if !o.activities && !o.json {
				if err := writeTable(a.human, table); err != nil {
					return err
				}
			}
			if o.follow {
				more, err := a.more(ctx, s, id, next)
				if err != nil {
					return err
				}
				if more {
					continue
				}
			}
			return a.writeAttempts(tally, tally.from(first, o.node), o)
		}
	})
}

// shows reports whether a record is printed.
func (o historyOptions) shows(r *history.Record) bool {
	return (o.node == "" || r.Payload.NodeID == o.node) && (!o.noSteps || r.Payload.AgentStep == nil)
}

// shown returns the records that are printed.
func (o historyOptions) shown(records []history.Record) (shown []history.Record) {
	for i := range records {
		if o.shows(&records[i]) {
			shown = append(shown, records[i])
		}
	}
	return shown
}

// rows returns the rows of the printed records. A state is shown as changes from the previous one, printed or not.
func (o historyOptions) rows(records []history.Record, a *attempts, states *stateTrail) (rows [][]string) {
	for i := range records {
		if o.shows(&records[i]) {
			rows = append(rows, recordRows(records[i:i+1], a, states, o.width())...)
		} else {
			states.apply(&records[i])
		}
	}
	return rows
}

// recordPage is how many records are read at once: each may have megabytes.
const recordPage = 16

// skip adds the records before the first printed one to the tally, because their outcomes may be printed, and notes the last
// state among them. States are large, so only that one is redacted.
func (s *session) skip(ctx context.Context, id string, first int64, tally *attempts, states *stateTrail) error {
	redaction := s.config.Redaction()
	for next := int64(1); next < first; {
		records, err := s.store.Read(ctx, id, next, int(min(first-next, recordPage)))
		if err != nil || len(records) == 0 {
			return err
		}
		for i := range records {
			r := &records[i]
			if states.apply(r); r.Name == history.StateUpdated {
				continue
			}
			r.Raw = r.Text(id)
			if err := r.Redact(redaction); err != nil {
				return err
			}
			tally.record(r)
		}
		next = records[len(records)-1].Seq + 1
	}
	if states.last != nil {
		states.last, _ = redaction.Or().Value(states.last).(map[string]any)
	}
	return nil
}

// more waits until a run has a record with this number; false means that the run has ended without it.
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

// width bounds the last column of the table.
func (o historyOptions) width() int {
	if o.full {
		return wholeWidth
	}
	return detailWidth
}

// writeAttempts prints the attempts, below the records or alone.
func (a *app) writeAttempts(tally *attempts, list []*timeline.Attempt, o historyOptions) error {
	switch {
	case o.activities && o.json:
		return tally.writeLines(a.stdout, list)
	case o.json || len(list) == 0:
		return nil
	case !o.activities:
		fmt.Fprintln(a.human)
	}
	return tally.write(a.human, list, !o.noSteps, a.columns())
}
