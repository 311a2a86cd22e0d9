package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
)

func newHandle(a *app) *cobra.Command {
	var note string
	var undo bool
	cmd := &cobra.Command{
		Use:   "handle ID... --note TEXT | --undo",
		Short: "Mark failed or cancelled runs as handled",
		Long: `Mark runs that have failed or were cancelled as handled: they need nobody any more, because somebody has done what was to be
done. list --unhandled leaves them out, with their subworkflows. A run of which a retry has completed is handled without this.

The note is kept beside the history, with the time and who wrote it; status shows it, export and import keep it. A newer note takes the
place of the older one. --undo takes the mark off.`,
		Example: `  workflows-engine handle order-17 --note 'refunded by hand, ticket 4711'
  workflows-engine handle order-17 --undo
  workflows-engine list --phase failed --unhandled`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("%s takes the ids of runs", cmd.CommandPath()).WithHint("See %s --help.", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: a.completeIDs(history.PhaseFailed),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("note") == undo {
				return usage("handle needs one of --note and --undo").WithHint("Write what was done about the run, as in --note 'refunded by hand'.")
			}
			for i := range args {
				if err := a.completeShortID(cmd, args[i:]); err != nil {
					return err
				}
			}
			return a.with(cmd.Context(), sessionOptions{executors: noExecutors, noAttempts: true}, func(s *session) error {
				handler, err := graph.Need[graph.Handler](s.engine, "handle")
				if err != nil {
					return err
				}
				for _, id := range args {
					if err := handler.Handle(cmd.Context(), graph.HandleRequest{ExecutionID: id, Note: note, Undo: undo}); err != nil {
						return err
					}
					if undo {
						_, err = fmt.Fprintf(a.human, "run %s needs somebody again\n", id)
					} else {
						_, err = fmt.Fprintf(a.human, "run %s is handled\n", id)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "`text` that says what was done")
	cmd.Flags().BoolVar(&undo, "undo", false, "take the mark off")
	return cmd
}
