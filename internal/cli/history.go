package cli

import (
	"context"
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
	s, err := a.open(ctx, sessionOptions{read: true})
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
	return writeRecordTable(a.human, records, heading)
}
