package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
)

func newCancel(a *app) *cobra.Command {
	var reason string
	var keepTasks bool
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "End a run and its subworkflows",
		Long: `End a run. A run that was cancelled before answers with the first reason; one that has completed or failed
cannot be cancelled. One whose definition asks for it (rollback in x-workflows-engine) is rolled back first, by the
processes that perform its nodes, and ends then; another cancel ends it at once.

The run's tasks at agents are cancelled too. With --keep-tasks they are not, now or later: for a run that was moved to
another database with export and import, and continues there with the same tasks.`,
		Example: `  workflows-engine cancel order-17 --reason 'ordered twice'
  workflows-engine cancel order-17 --keep-tasks --reason 'moved to new.db'`,
		Args:              exactly("ID"),
		ValidArgsFunction: a.completeIDs(""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.cancel(cmd.Context(), args[0], reason, keepTasks)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the history")
	cmd.Flags().BoolVar(&keepTasks, "keep-tasks", false, "leave tasks at agents alone: they belong to the run where it was moved to")
	return cmd
}

// cancel ends a run.
func (a *app) cancel(ctx context.Context, id, reason string, keepTasks bool) error {
	return a.with(ctx, sessionOptions{lenient: true}, func(s *session) error {
		if s.without != nil {
			// Whatever is missing here, a run can be cancelled, unless a parent waits for it: the parent would continue.
			execution, err := s.store.Execution(ctx, id)
			if err != nil {
				return err
			}
			if execution.Parent != "" {
				return s.without
			}
			if !keepTasks {
				fmt.Fprintf(a.stderr, "%s the run's tasks at agents are not cancelled, since the settings cannot be used: %v\n", a.paint.wait("warning:"), s.without)
			}
		}
		run, err := s.engine.Cancel(ctx, graph.CancelRequest{ExecutionID: id, Reason: reason, KeepTasks: keepTasks})
		if err != nil {
			return err
		}
		if !run.Status.Terminal() {
			_, err = fmt.Fprintf(a.human, "run %s is rolled back first; to see how far it is:\n  %s\n",
				run.ExecutionID, s.command("status", run.ExecutionID))
			return err
		}
		line := "cancelled run " + run.ExecutionID
		if run.Reason != "" {
			line += ": " + run.Reason
		}
		_, err = fmt.Fprintln(a.human, line)
		return err
	})
}
