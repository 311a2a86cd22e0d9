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
		Short: "Mark runs as handled",
		Long: `Mark failed or cancelled runs as handled: they need no more attention. list --unhandled leaves them out, with their subworkflows. A
run with a completed retry counts as handled.

The note is stored beside the history with its time and author; status shows it, export and import keep it. A new note replaces the
old one. --undo removes the mark.`,
		Example: `  workflows-engine handle order-17 --note 'refunded by hand, ticket 4711'
  workflows-engine handle order-17 --undo
  workflows-engine list --phase failed --unhandled`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("%s requires the ids of runs", cmd.CommandPath()).WithHint("See %s --help.", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: a.completeIDs(history.PhaseFailed),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("note") == undo {
				return usage("handle requires --note or --undo").WithHint("Describe the solution, as in --note 'refunded by hand'.")
			}
			for i := range args {
				if err := a.completeShortID(cmd, args[i:]); err != nil {
					return err
				}
			}
			return a.with(cmd.Context(), sessionOptions{executors: noExecutors, work: graph.WorkNone}, func(s *session) error {
				handler, err := graph.Need[graph.Handler](s.engine, "handle")
				if err != nil {
					return err
				}
				for _, id := range args {
					if err := handler.Handle(cmd.Context(), graph.HandleRequest{ExecutionID: id, Note: note, Undo: undo}); err != nil {
						return err
					}
					if undo {
						_, err = fmt.Fprintf(a.human, "run %s is unhandled\n", id)
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
	cmd.Flags().StringVar(&note, "note", "", "`text` that describes the solution")
	cmd.Flags().BoolVar(&undo, "undo", false, "remove the mark")
	return cmd
}
