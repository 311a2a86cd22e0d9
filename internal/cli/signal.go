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
	startOptions
	payload, key, folder string
	start                string
	input                []string
}

func newSignal(a *app) *cobra.Command {
	var o signalOptions
	cmd := &cobra.Command{
		Use:   "signal ID NAME",
		Short: "Send a signal to a run",
		Long: `Send a signal. Its payload is merged into the state of the run by the reducers. A run that does not wait for a signal
of this name rejects it and does not change, unless it keeps the signal for a later wait (extension early_signals).

With --start, a run of FILE is started with the signal unless ID exists; --title, --label, --notify, --priority, --queue and --deadline describe
that run as in the command run. If the run would reject the signal, nothing is started. Several processes may do so at the same time; with
--idempotency-key the command can be repeated.`,
		Example: `  workflows-engine signal order-17 release_approved --payload '{"approved_by":"kim"}'
  workflows-engine signal order-17 go
  workflows-engine signal order-17 paid --start order.yaml --input order=17 --idempotency-key p3`,
		Args:              exactly("ID", "NAME"),
		ValidArgsFunction: a.completeWaits(history.PhaseAwaitingSignal, awaitedSignal),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.signal(cmd.Context(), args[0], args[1], o)
		},
	}
	var forStart []string
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		for _, name := range forStart {
			if o.start == "" && cmd.Flags().Changed(name) {
				return usage("--%s requires --start", name).WithHint("Name the definition of the run with --start FILE, or leave out --%s.", name)
			}
		}
		return nil
	}
	cmd.Flags().StringVarP(&o.payload, "payload", "p", "", "payload of the signal: `JSON`, @file, or - for standard input (default {})")
	cmd.Flags().StringVar(&o.key, "idempotency-key", "", "unique `text` of this signal: repeating it changes nothing")
	cmd.Flags().StringVar(&o.start, "start", "", "start a run of the definition in `FILE` with the signal, unless ID exists")
	registerInput(cmd.Flags(), &o.input, "run that --start starts")
	forStart = append(o.startOptions.register(a, cmd), "input")
	registerContinue(cmd.Flags(), &o.driveOptions, &o.folder)
	return cmd
}

// signal delivers a signal and drives the run.
func (a *app) signal(ctx context.Context, id, name string, o signalOptions) error {
	payload, err := a.readObject("--payload", o.payload)
	if err != nil {
		return err
	}
	if o.start != "" {
		return a.startSignalled(ctx, graph.SignalRequest{ExecutionID: id, Name: name, Payload: payload, IdempotencyKey: o.key}, o)
	}
	return a.continued(ctx, id, o.folder, o.driveOptions, true, func(s *session, caller graph.Caller) (*view.Run, error) {
		return s.engine.Signal(ctx, graph.SignalRequest{ExecutionID: id, Name: name, Payload: payload, IdempotencyKey: o.key, Caller: caller})
	})
}

// startSignalled delivers a signal to a run, which it starts if it is missing, and drives the run.
func (a *app) startSignalled(ctx context.Context, req graph.SignalRequest, o signalOptions) error {
	c, err := a.readStartable(o.start, "")
	if err != nil {
		return err
	}
	input, err := a.readInput(o.input, stateSchema(c.document.Value()))
	if err != nil {
		return err
	}
	mode, err := parseMode(o.mode)
	if err != nil {
		return err
	}
	start, err := o.request(c.document, input, mode)
	if err != nil {
		return err
	}
	start.RequireCapable = true
	return a.with(ctx, sessionOptions{store: createStore, display: showTree, drives: true, folder: o.folder}, func(s *session) error {
		d := a.drive(s, o.driveOptions)
		req.Caller = graph.Caller{Wait: d.caller.Wait}
		req.Start = &start
		run, err := s.engine.Signal(ctx, req)
		return d.from(ctx, run, err)
	})
}
