package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
)

type recoverOptions struct {
	driveOptions
	folder string
	dryRun bool
	limit  int
}

func newRecover(a *app) *cobra.Command {
	var o recoverOptions
	cmd := &cobra.Command{
		Use:   "recover [ID]",
		Short: "Take over runs whose process is gone, and drive them on",
		Long: `Take over runs that were being driven by a process that has ended, and runs whose timer is due, and drive them
until they end or wait for somebody. A run that another process drives is left alone. With an id, that run alone
is driven on, its timers included.

What was in flight when a process ended is performed again, with the same idempotency key.`,
		Example: `  workflows-engine recover --dry-run
  workflows-engine recover
  workflows-engine recover 3f0c8a --profile demo`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactly("at most one ID")(cmd, args)
			}
			return nil
		},
		ValidArgsFunction: a.completeIDs(""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.recoverOne(cmd.Context(), args[0], o)
			}
			return a.recoverAll(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only list the runs that would be taken over")
	cmd.Flags().IntVar(&o.limit, "limit", 100, "how many runs to take over at most")
	registerContinue(cmd.Flags(), &o.driveOptions, &o.folder)
	return cmd
}

// recoverOne drives one run on from where it stands.
func (a *app) recoverOne(ctx context.Context, id string, o recoverOptions) error {
	if o.dryRun {
		return usage("--dry-run lists runs, so it takes no ID").WithHint("See workflows-engine status %s.", id)
	}
	return a.continued(ctx, id, o.folder, o.driveOptions, func(s *session, caller graph.Caller) (*graph.Run, error) {
		execution, err := s.store.Execution(ctx, id)
		if err != nil {
			return nil, err
		}
		if execution.Phase.Terminal() {
			return s.runner.Status(ctx, graph.StatusRequest{ExecutionID: id})
		}
		return s.runner.Start(ctx, graph.StartRequest{
			ExecutionID: id, Definition: caller.Definition, DefinitionRef: execution.DefinitionHash,
			AllowExisting: true, Wait: caller.Wait,
		})
	})
}

// recoverAll takes over what has no driver, fires what is due, and prints where each of those runs then stands.
func (a *app) recoverAll(ctx context.Context, o recoverOptions) (err error) {
	s, err := a.open(ctx, sessionOptions{live: !o.dryRun, folder: o.folder})
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, s.close()) }()
	due, err := s.store.DueTimers(ctx, a.now(), o.limit)
	if err != nil {
		return err
	}
	found, err := s.runner.Recover(ctx, graph.RecoverRequest{DryRun: o.dryRun, Limit: o.limit})
	if err != nil {
		return err
	}
	ids := found.ExecutionIDs
	for _, t := range due {
		if !slices.Contains(ids, t.ExecutionID) {
			ids = append(ids, t.ExecutionID)
		}
	}
	if len(ids) == 0 {
		fmt.Fprintln(a.stderr, "nothing to recover")
	}
	d := a.drive(s, o.driveOptions)
	d.leaveTimers = true
	for _, id := range ids {
		if o.dryRun {
			fmt.Fprintln(a.stdout, id)
			continue
		}
		run, err := s.runner.Status(ctx, graph.StatusRequest{ExecutionID: id})
		if err == nil {
			run, err = d.rest(ctx, run)
		}
		if err != nil || ctx.Err() != nil {
			return d.stopped(ctx, run, err)
		}
		s.flush()
		fmt.Fprintf(a.stdout, "%s %s\n", id, run.Status)
	}
	return nil
}
