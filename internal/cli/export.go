package cli

import (
	"bufio"
	"context"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
)

func newExport(a *app) *cobra.Command {
	var redact, move bool
	cmd := &cobra.Command{
		Use:   "export ID",
		Short: "Export a run",
		Long: `Write a run with its subworkflows and their definitions to standard output, one JSON object a line: a header, definitions,
records, and a trailer with counts and a SHA-256, which reveals a truncated file. import reads the file into another database.

The run may continue during the export; the file has one consistent state. --move ends the run here and writes the file as it was
before, for a run that continues where the file is imported: the run is cancelled, agents keep its tasks, and an attempt under way
is repeated there with the same idempotency key. Repeat the command if it was interrupted. Without --move, a run in two databases performs its
activities twice.

The file has inputs, outputs and answers in plain text, because import needs them. --redact masks the values of fields that look like
secrets (apikey, token, password, secret), for a file to read; it cannot be imported.`,
		Example: `  workflows-engine db export order-17 > run.jsonl
  workflows-engine db export order-17 --move > run.jsonl
  workflows-engine db export order-17 --redact | jq -c 'select(.type == "record")'
  workflows-engine db export order-17 --move | workflows-engine db import - --db new.db`,
		Args:              exactly("ID"),
		ValidArgsFunction: a.completeIDs(""),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.export(cmd.Context(), args[0], redact, move) },
	}
	cmd.Flags().BoolVar(&redact, "redact", false, "mask values that look like secrets; the file cannot be imported")
	cmd.Flags().BoolVar(&move, "move", false, "end the run here; it continues where the file is imported")
	cmd.PreRunE = exclusive("redact", "move")
	return cmd
}

// export writes a run to standard output.
func (a *app) export(ctx context.Context, id string, redact, move bool) error {
	o := sessionOptions{store: readOnlyStore, executors: noExecutors}
	if redact || move {
		o.executors = optionalExecutors
	}
	if move {
		o.store, o.work = existingStore, graph.WorkNone
	}
	return a.with(ctx, o, func(s *session) error {
		exporter, err := graph.Need[graph.Exporter](s.engine, "db export")
		if err != nil {
			return err
		}
		out := bufio.NewWriter(a.stdout)
		if err := exporter.Export(ctx, id, graph.ExportOptions{Redact: redact, Move: move, Now: a.now()}, out); err != nil {
			return err
		}
		return out.Flush()
	})
}
