package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

type resumeOptions struct {
	driveOptions
	payload, interrupt, folder string
	// ask asks the person at the terminal instead of giving a payload.
	ask bool
}

func newResume(a *app) *cobra.Command {
	var o resumeOptions
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Answer an interrupt",
		Long: `Answer the question of a run, and drive the run. The payload must match the resume_schema of the interrupt; a rejected payload
changes nothing. workflows-engine status ID shows the question. At a terminal, leave out --payload to be asked.

Answer the calls of an agent with {"decision":"approve"} for all of them, or with {"calls":{"t2.c1":{"decision":…},…}} for each:
approve; deny or stop, with "reason"; edit, with "arguments"; respond, with "result".`,
		Example: `  workflows-engine resume order-17 --payload '{"approve":true}'
  workflows-engine resume order-17 --payload @answer.json
  workflows-engine resume order-17 --payload '{"decision":"edit","arguments":{"amount":12}}'
  workflows-engine resume order-17 --payload '{"approve":false}' --resume '{"approve":true}'`,
		Args:              exactly("ID"),
		ValidArgsFunction: a.completeIDs(history.PhaseInterrupted),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.ask = a.interactive && !cmd.Flags().Changed("payload")
			return a.resume(cmd.Context(), args[0], o)
		},
	}
	cmd.Flags().StringVarP(&o.payload, "payload", "p", "", "answer: `JSON`, @file, or - for standard input (default {})")
	cmd.Flags().StringVar(&o.interrupt, "interrupt", "", "answer the interrupt with this `id`, shown by status; required if several are open")
	registerContinue(cmd.Flags(), &o.driveOptions, &o.folder)
	a.completeWait(cmd, "interrupt", openInterrupt)
	return cmd
}

// resume answers an interrupt and drives the run.
func (a *app) resume(ctx context.Context, id string, o resumeOptions) error {
	payload, err := a.readObject("--payload", o.payload)
	if err != nil {
		return err
	}
	return a.continued(ctx, id, o.folder, o.driveOptions, !o.ask, func(s *session, caller graph.Caller) (*view.Run, error) {
		if o.ask {
			return s.engine.Status(ctx, graph.StatusRequest{ExecutionID: id})
		}
		run, err := s.resume(ctx, graph.ResumeRequest{
			ExecutionID: id, InterruptID: o.interrupt, Payload: payload, Caller: caller,
		})
		if e, ok := problem.As(err); ok && o.payload == "" && e.Code == problem.InvalidResumePayload && e.Reason == "" {
			hinted := *e
			err = hinted.WithHint("The run is still interrupted. Write the answer as --payload JSON; without it and without a terminal the answer is {}.")
		}
		return run, err
	})
}

// resume answers an interrupt. A repetition of a recorded answer returns the status of the run, so that the command ends as the first one did.
// The engine does so by the interrupt's id alone: without one, and without an open question, the protocol requires an error.
func (s *session) resume(ctx context.Context, req graph.ResumeRequest) (*view.Run, error) {
	run, err := s.engine.Resume(ctx, req)
	e, ok := problem.As(err)
	if !ok || e.Code != problem.InvalidResumePayload || e.Details["repeated"] != true {
		return run, err
	}
	if run, err = s.engine.Status(ctx, graph.StatusRequest{ExecutionID: req.ExecutionID}); err == nil {
		run.Repeated = true
	}
	return run, err
}
