package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

func newCancel(a *app) *cobra.Command {
	var reason string
	var keepTasks bool
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "Cancel a run",
		Long: `Cancel a run and its subworkflows. A repeated cancel returns the first reason. A completed or failed run cannot be cancelled. If its
definition has a rollback (x-workflows-engine), the run is rolled back first, by the processes that perform its nodes; another
cancel ends it at once.

Tasks of the run at agents are cancelled, too. --keep-tasks keeps them, for a run that was moved to another database with export and
import and continues there with the same tasks.`,
		Example: `  workflows-engine cancel order-17 --reason 'ordered twice'
  workflows-engine cancel order-17 --keep-tasks --reason 'moved to new.db'`,
		Args:              exactly("ID"),
		ValidArgsFunction: a.completeIDs(""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.cancel(cmd.Context(), args[0], reason, keepTasks)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "record this `reason` in the history")
	cmd.Flags().BoolVar(&keepTasks, "keep-tasks", false, "keep tasks at agents running, for a run that was moved elsewhere")
	return cmd
}

// cancel cancels a run.
func (a *app) cancel(ctx context.Context, id, reason string, keepTasks bool) error {
	return a.with(ctx, sessionOptions{executors: optionalExecutors, work: graph.WorkNone}, func(s *session) error {
		if s.without != nil {
			// A run can be cancelled without its executors, unless a parent waits for it: the parent would continue.
			execution, err := s.store.Execution(ctx, id)
			if err != nil {
				return err
			}
			if execution.Parent != "" {
				return s.without
			}
			if !keepTasks {
				a.say("%s tasks of the run at agents were not cancelled: invalid settings: %v\n", a.paint.wait("warning:"), s.without)
			}
		}
		run, err := s.engine.Cancel(ctx, graph.CancelRequest{ExecutionID: id, Reason: reason, KeepTasks: keepTasks})
		if err != nil {
			return err
		}
		if !run.Status.Terminal() {
			return a.rollsBack(ctx, s, run)
		}
		line := "cancelled run " + run.ExecutionID
		if run.Reason != "" {
			line += ": " + run.Reason
		}
		if _, err = fmt.Fprintln(a.human, line); err != nil {
			return err
		}
		for _, w := range run.Warnings {
			if w.Code == problem.CancelGoesOn {
				a.say("%s %s (%s)\n", a.paint.wait("warning:"), w.Message, w.Code)
			}
		}
		return a.reportBelow(ctx, s, run, a.human)
	})
}

// reportBelow names the subworkflows that are being rolled back after their run has ended unsuccessfully.
func (a *app) reportBelow(ctx context.Context, s *session, run *view.Run, w io.Writer) error {
	if run.Status == machine.Completed || run.ChildExecutionID == "" {
		return nil
	}
	found, err := s.engine.List(ctx, history.ListQuery{Below: run.ExecutionID, Phases: history.OpenPhases(), Limit: maxBelow})
	if err != nil {
		return err
	}
	for i := range found.Executions {
		id := found.Executions[i].ID
		below, err := s.engine.Status(ctx, graph.StatusRequest{ExecutionID: id})
		if err != nil || len(below.Rollbacks) == 0 {
			continue // it is about to end, or cannot be read
		}
		fmt.Fprintf(w, "a server or worker rolls back subworkflow %s; or run\n  %s\n", id, s.goesOn(id))
	}
	return nil
}

// rollsBack prints that a cancelled run is being rolled back, and its owner.
func (a *app) rollsBack(ctx context.Context, s *session, run *view.Run) error {
	owners, err := s.ownersOf(ctx, run)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.human, "run %s is being rolled back; show its progress with:\n  %s\n", run.ExecutionID, s.command("status", run.ExecutionID))
	unserved := run.Ready != nil && run.Ready.Workers == 0
	for i := range run.Pending {
		p := &run.Pending[i]
		if p.Queued && unserved && p.ExecutionID == run.ExecutionID {
			fmt.Fprintf(a.human, "%s: %s\n", plainCell(p.NodeID), ownerText(history.Owner{}, "", s.goesOn(run.ExecutionID)))
			return nil
		}
		if owner, ok := owners[p.ExecutionID]; ok && byProcess(p) && !owner.Live() {
			fmt.Fprintf(a.human, "%s: %s\n", plainCell(p.NodeID), ownerText(owner, owner.Process, s.goesOn(run.ExecutionID)))
			return nil
		}
	}
	return nil
}
