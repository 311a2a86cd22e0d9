package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

func newRetry(a *app) *cobra.Command {
	var o forkOptions
	cmd := &cobra.Command{
		Use:   "retry ID",
		Short: "Start a new run from before the failure of another one",
		Long: `Start a new run with the past of a failed one up to before the node that failed, and drive it. What the failed run has done
before is not done again; of a map, items that had succeeded before the first failure are kept. A node that failed as a subworkflow starts its subworkflow
anew. A run that failed at a limit goes on from where it was: raise the limit. One that was rolled back is tried again from before the first node
that was undone.

The failed run is not changed. With --definition the new run follows a corrected definition, which must lead to the same past; --state
corrects the state before the node (a JSON merge patch).
fork begins at any other place.`,
		Example: `  workflows-engine retry order-17
  workflows-engine retry order-17 --definition corrected.workflow.json
  workflows-engine retry order-17 --state '{"amount":17}'
  workflows-engine retry order-17 --max-visits 50000 --id second-try`,
		Args:              exactly("ID"),
		ValidArgsFunction: a.completeIDs(history.PhaseFailed),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.corrects = cmd.Flags().Changed("state")
			return a.retry(cmd.Context(), args[0], o)
		},
	}
	registerFork(cmd.Flags(), &o)
	return cmd
}

// retry starts a run from before the failure of another one and drives it.
func (a *app) retry(ctx context.Context, id string, o forkOptions) error {
	return a.forked(ctx, o, func(s *session) (graph.ForkRequest, error) {
		return beforeFailure(ctx, s, id)
	})
}

// beforeFailure asks for a fork from before the failure of a run.
func beforeFailure(ctx context.Context, s *session, id string) (req graph.ForkRequest, err error) {
	run, err := s.engine.Status(ctx, graph.StatusRequest{ExecutionID: id})
	if err != nil {
		return req, err
	}
	if run.Status != machine.Failed {
		return req, problem.New(problem.ValidationError, "run %q has not failed: it is %s", id, run.Status).WithPlace(problem.Place{ExecutionID: id}).
			WithHint("%s fork begins a new run from any place of another one.", program)
	}
	req.ExecutionID = id
	_, atLimit := limitFlags[problem.Code(run.ErrorCode)]
	if atLimit || run.ErrorNodeID == "" {
		req.Seq = run.Seq // the end is not taken over
		return req, nil
	}
	req.BeforeNode = run.ErrorNodeID
	if run.Compensated > 0 { // before that node stands what was undone
		_, node, err := history.BeforeRollback(func(from int64, limit int) ([]history.Record, error) {
			return s.store.Read(ctx, id, from, limit)
		})
		if err != nil {
			return req, err
		}
		req.BeforeNode = cmp.Or(node, run.ErrorNodeID)
	}
	return req, nil
}
