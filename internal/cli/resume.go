package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
)

type resumeOptions struct {
	driveOptions
	payload, interrupt, folder string
}

func newResume(a *app) *cobra.Command {
	var o resumeOptions
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Answer an interrupt, and drive the run on",
		Long: `Answer the question that a run waits at, and drive the run on. The payload must satisfy the interrupt's
resume_schema; a refused payload changes nothing. workflows-engine status ID shows what is asked.`,
		Example: `  workflows-engine resume 3f0c8a --payload '{"approve":true}'
  workflows-engine resume 3f0c8a --payload @answer.json
  workflows-engine resume 3f0c8a --payload '{"approve":false}' --resume '{"approve":true}'`,
		Args:              exactly("ID"),
		ValidArgsFunction: a.completeIDs(history.PhaseInterrupted),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.resume(cmd.Context(), args[0], o) },
	}
	cmd.Flags().StringVarP(&o.payload, "payload", "p", "", "the answer: `JSON`, @file, or - for standard input (default {})")
	cmd.Flags().StringVar(&o.interrupt, "interrupt", "", "the interrupt's `id`, when several are open")
	registerContinue(cmd.Flags(), &o.driveOptions, &o.folder)
	return cmd
}

// resume answers an interrupt and drives the run.
func (a *app) resume(ctx context.Context, id string, o resumeOptions) error {
	payload, err := a.readObject("--payload", o.payload)
	if err != nil {
		return err
	}
	return a.continued(ctx, id, o.folder, o.driveOptions, func(s *session, caller graph.Caller) (*graph.Run, error) {
		return s.runner.Resume(ctx, graph.ResumeRequest{
			ExecutionID: id, InterruptID: o.interrupt, Payload: payload, Caller: caller,
		})
	})
}

// continued opens a session, makes one call that continues a run, and drives the run on.
func (a *app) continued(
	ctx context.Context, id, folder string, o driveOptions, call func(*session, graph.Caller) (*graph.Run, error),
) (err error) {
	s, err := a.open(ctx, sessionOptions{live: true, folder: folder})
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, s.close()) }()
	d := a.drive(s, o)
	if d.caller.Mode, err = parseMode(o.mode); err != nil {
		return err
	}
	if d.caller.Definition, err = a.readDefinition(o.definition); err != nil {
		return err
	}
	if err := s.checkCapable(ctx, id, d.caller); err != nil {
		return err
	}
	run, err := call(s, d.caller)
	return d.from(ctx, run, err)
}
