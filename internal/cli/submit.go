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
		Short: "Report the outcome of an activity that the host performs",
		Long: `Report the outcome of a pending activity or delegate of a host-mediated run, and drive the run: its output
with --result, or a failure with --error and --code, which the node's retry policy then judges.`,
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
	set.StringVarP(&o.result, "result", "r", "", "the output: `JSON`, @file, or - for standard input")
	set.StringVar(&o.failure, "error", "", "what went wrong, instead of a result")
	set.StringVar(&o.code, "code", "", "stable code of the failure; retry policies match on it")
	set.StringVar(&o.branch, "branch", "", "parallel branch of the node, when it waits in several")
	set.StringVar(&o.key, "idempotency-key", "", "key of the attempt, as status shows it; a repeated submit then does nothing")
	set.StringVar(&o.correlation, "correlation-id", "", "correlation id of a delegate (default: the pending one's)")
	set.StringVar(&o.task, "external-task-id", "", "the task's id at the agent")
	cmd.PreRunE = exclusive("result", "error")
	registerContinue(set, &o.driveOptions, &o.folder)
	a.completeWait(cmd, "branch", hostBranch)
	a.completeWait(cmd, "idempotency-key", hostKey)
	return cmd
}

// submit reports an outcome and drives the run.
func (a *app) submit(ctx context.Context, id, node string, o submitOptions) error {
	if o.failure == "" && o.result == "" {
		return usage("submit needs an outcome").WithHint("Give --result JSON, or --error TEXT for a failure.")
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

// completeSubmit fills in what the run knows itself and a person need not repeat: the parallel span and the
// correlation id. The first pending entry of the node counts; if there is none, the engine's refusal says so.
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
