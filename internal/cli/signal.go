package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

type signalOptions struct {
	driveOptions
	payload, key, folder string
}

func newSignal(a *app) *cobra.Command {
	var o signalOptions
	cmd := &cobra.Command{
		Use:   "signal ID NAME",
		Short: "Send a signal to a run",
		Long: `Send a signal. Its payload is merged into the state of the run by the reducers. A run that does not wait for a signal
of this name rejects it and does not change, unless it keeps the signal for a later wait (extension early_signals).`,
		Example: `  workflows-engine signal order-17 release_approved --payload '{"approved_by":"kim"}'
  workflows-engine signal order-17 go`,
		Args:              exactly("ID", "NAME"),
		ValidArgsFunction: a.completeWaits(history.PhaseAwaitingSignal, awaitedSignal),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.signal(cmd.Context(), args[0], args[1], o)
		},
	}
	cmd.Flags().StringVarP(&o.payload, "payload", "p", "", "payload of the signal: `JSON`, @file, or - for standard input (default {})")
	cmd.Flags().StringVar(&o.key, "idempotency-key", "", "unique `text` of this signal: a repeated one has no effect")
	registerContinue(cmd.Flags(), &o.driveOptions, &o.folder)
	return cmd
}

// signal delivers a signal and drives the run.
func (a *app) signal(ctx context.Context, id, name string, o signalOptions) error {
	payload, err := a.readObject("--payload", o.payload)
	if err != nil {
		return err
	}
	return a.continued(ctx, id, o.folder, o.driveOptions, true, func(s *session, caller graph.Caller) (*view.Run, error) {
		return s.engine.Signal(ctx, graph.SignalRequest{ExecutionID: id, Name: name, Payload: payload, IdempotencyKey: o.key, Caller: caller})
	})
}
