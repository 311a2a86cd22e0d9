package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

type submitOptions struct {
	driveOptions
	result, failure, code, branch, key, correlation, task, folder string
}

func newSubmit(a *app) *cobra.Command {
	var o submitOptions
	cmd := &cobra.Command{
		Use:   "submit ID NODE",
		Short: "Submit the outcome of an activity",
		Long: `Submit the outcome of a pending activity or delegate of a host-mediated run, and drive the run: an output
with --result, or a failure with --error and --code. The retry policy of the node applies to the failure.`,
		Example: `  workflows-engine submit order-17 classify --result '{"intent":"billing","confidence":0.9}'
  workflows-engine submit order-17 fetch --error 'HTTP 503' --code UPSTREAM_DOWN
  workflows-engine submit order-17 search_web --branch web --result @findings.json`,
		Args:              exactly("ID", "NODE"),
		ValidArgsFunction: a.completeWaits(history.PhaseAwaitingActivity, hostWork),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.submit(cmd.Context(), args[0], args[1], o)
		},
	}
	set := cmd.Flags()
	set.StringVarP(&o.result, "result", "r", "", "output: `JSON`, @file, or - for standard input")
	set.StringVar(&o.failure, "error", "", "report a failure with this `message`")
	set.StringVar(&o.code, "code", "", "stable `code` of the failure; retry policies match it")
	set.StringVar(&o.branch, "branch", "", "parallel `branch` of the node, if it waits in several")
	set.StringVar(&o.key, "idempotency-key", "", "`key` of the attempt, shown by status: repeating the submit changes nothing")
	set.StringVar(&o.correlation, "correlation-id", "", "correlation `id` of a delegate (default: the pending delegate's)")
	set.StringVar(&o.task, "external-task-id", "", "`id` of the task at the agent")
	cmd.PreRunE = exclusive("result", "error")
	registerContinue(set, &o.driveOptions, &o.folder)
	a.completeWait(cmd, "branch", hostBranch)
	a.completeWait(cmd, "idempotency-key", hostKey)
	return cmd
}

// submit reports an outcome and drives the run.
func (a *app) submit(ctx context.Context, id, node string, o submitOptions) error {
	if o.failure == "" && o.result == "" {
		return usage("submit requires an outcome").WithHint("Write --result JSON, or --error TEXT for a failure.")
	}
	req := graph.SubmitRequest{
		ExecutionID: id, NodeID: node, OK: o.failure == "", Error: o.failure, Code: o.code,
		CorrelationID: o.correlation, ExternalTaskID: o.task, IdempotencyKey: o.key,
	}
	if req.OK {
		var err error
		if req.Result, err = a.readObject("--result", o.result); err != nil {
			return err
		}
	}
	return a.continued(ctx, id, o.folder, o.driveOptions, true, func(s *session, caller graph.Caller) (*view.Run, error) {
		run, err := s.engine.Status(ctx, graph.StatusRequest{ExecutionID: id})
		if err != nil {
			return nil, err
		}
		completeSubmit(&req, run, o.branch)
		req.Caller = caller
		return s.engine.SubmitActivity(ctx, req)
	})
}

// completeSubmit fills in the parallel span and the correlation id from the first pending entry of the node. Without one the engine
// reports the error.
func completeSubmit(req *graph.SubmitRequest, run *view.Run, branch string) {
	for _, p := range run.Pending {
		if p.NodeID != req.NodeID || !p.Host || branch != "" && (p.Span == nil || p.Span.BranchName != branch) {
			continue
		}
		req.Span = p.Span
		if p.Kind == machine.WaitDelegate && req.CorrelationID == "" {
			req.CorrelationID = p.CorrelationID
		}
		return
	}
}
