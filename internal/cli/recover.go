package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
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
until they end or wait for somebody. A run that another process drives is left alone and named; so is one that
nothing configured here can perform, and the exit status then is 1. With an id, that run alone is driven on, its
timers included. A process that was killed holds its runs for some seconds more; recover ID waits for that.

What was in flight when a process ended is performed again, with the same idempotency key.

--dry-run changes nothing and says of each run why it would be driven on, or why it would not; how many runs wait for
a host, a person or a signal, which are left to them, goes to standard error. A worker does the same all the time.`,
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
		return s.takeOver(ctx, id, caller)
	})
}

// recoverAll takes over what has no driver, fires what is due, and prints where each of those runs then stands. Runs
// that nothing here can perform are named and left to others.
func (a *app) recoverAll(ctx context.Context, o recoverOptions) (err error) {
	if o.limit < 1 {
		return usage("--limit: %d is not above 0", o.limit)
	}
	caller, err := a.caller(o.driveOptions)
	if err != nil {
		return err
	}
	s, err := a.open(ctx, sessionOptions{live: !o.dryRun, folder: o.folder})
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, s.close()) }()
	found, err := a.recoverable(ctx, s, o.limit)
	if err != nil {
		return err
	}
	ids := found.ids
	held, until, err := s.heldRuns(ctx, a.now(), ids)
	if err != nil {
		return err
	}
	if len(held) > 0 {
		fmt.Fprintf(a.stderr, "held by other processes, the first until %s: %s\n", timeText(until), strings.Join(held, ", "))
	}
	switch {
	case o.dryRun:
		return a.writeRecoverable(ctx, s, found, len(held))
	case len(ids) == 0 && len(held) == 0:
		fmt.Fprintln(a.stderr, "nothing to recover")
	}
	d := a.drive(s, o.driveOptions)
	d.caller.Mode, d.caller.Definition = caller.Mode, caller.Definition
	d.leaveTimers = true
	return d.recover(ctx, ids)
}

// recoverable are runs that a recover drives on, and why.
type recoverable struct {
	ids []string
	why map[string]string
}

func (r *recoverable) add(id, why string) {
	if r.why[id] == "" {
		r.ids = append(r.ids, id)
		r.why[id] = why
	}
}

// recoverable lists runs without a driver, and runs whose timer is due; for subworkflows the runs that they belong to.
func (a *app) recoverable(ctx context.Context, s *session, limit int) (recoverable, error) {
	r := recoverable{why: map[string]string{}}
	found, err := s.runner.Recover(ctx, graph.RecoverRequest{DryRun: true, Limit: limit})
	if err != nil {
		return r, err
	}
	due, err := s.store.DueTimers(ctx, a.now(), limit)
	if err != nil {
		return r, err
	}
	for _, id := range found.ExecutionIDs {
		top, err := s.top(ctx, id)
		if err != nil {
			return r, err
		}
		r.add(top.ID, "its process is gone"+ofChild(top.ID, id))
	}
	for _, t := range due {
		top, err := s.top(ctx, t.ExecutionID)
		if err != nil {
			return r, err
		}
		r.add(top.ID, "a timer was due "+timeText(t.Due)+ofChild(top.ID, t.ExecutionID))
	}
	return r, nil
}

// ofChild says which subworkflow of a run is meant, if one is.
func ofChild(top, id string) string {
	if top == id {
		return ""
	}
	return " (subworkflow " + id + ")"
}

// writeRecoverable prints what a recover would do.
func (a *app) writeRecoverable(ctx context.Context, s *session, found recoverable, held int) error {
	rows := [][]string{{"ID", "NAME", "NODE", "WHY"}}
	for _, id := range found.ids {
		execution, err := s.store.Execution(ctx, id)
		if err != nil {
			return err
		}
		why := found.why[id]
		if err := s.checkCapable(ctx, id, graph.Caller{}); err != nil {
			why = "skipped: " + err.Error()
		}
		rows = append(rows, []string{id, dash(execution.DefinitionName), dash(execution.CurrentNodeID), why})
	}
	switch {
	case len(found.ids) > 0:
		if err := writeTable(a.human, rows); err != nil {
			return err
		}
	case held == 0: // otherwise the runs that others hold have been told
		fmt.Fprintln(a.stderr, "nothing to recover")
	}
	waiting, atLeast := 0, ""
	for _, phase := range []history.Phase{history.PhaseAwaitingActivity, history.PhaseInterrupted, history.PhaseAwaitingSignal} {
		page, err := s.store.List(ctx, history.ListQuery{Phase: phase, Limit: 100})
		if err != nil {
			return err
		}
		waiting += len(page.Executions)
		if page.NextCursor != "" {
			atLeast = "at least "
		}
	}
	if waiting > 0 {
		fmt.Fprintf(a.stderr, "left to a host, a person or a signal: %s%s; see %s\n", atLeast, count(waiting, "run"), s.command("list"))
	}
	return nil
}

// recover drives all of some runs at once, and waits for one after another.
func (d *drive) recover(ctx context.Context, ids []string) (err error) {
	var runs []*graph.Run
	var skipped error
	for _, id := range ids {
		run, err := d.begin(ctx, id)
		if err != nil && ctx.Err() == nil {
			d.session.flush()
			fmt.Fprintf(d.app.stderr, "%s run %s:\n", d.app.paint.wait("skipped"), id)
			d.app.printError(err)
			skipped = silent{exitFailed}
			continue
		}
		if err != nil {
			return d.stopped(ctx, run, err)
		}
		runs = append(runs, run)
	}
	for _, run := range runs {
		next, err := d.rest(ctx, run)
		if ctx.Err() != nil {
			return d.stopped(ctx, run, err)
		}
		d.session.flush()
		if err != nil {
			d.app.printError(err)
			skipped = silent{exitFailed}
			continue
		}
		fmt.Fprintf(d.app.human, "%s %s\n", next.ExecutionID, next.Status)
	}
	return skipped
}

// begin takes a run over, if something here can perform it.
func (d *drive) begin(ctx context.Context, id string) (*graph.Run, error) {
	if err := d.session.checkCapable(ctx, id, d.caller); err != nil {
		return nil, err
	}
	run, err := d.session.runner.Status(ctx, graph.StatusRequest{ExecutionID: id})
	if err != nil || run.Status.Terminal() {
		return run, err
	}
	return d.session.takeOver(ctx, id, d.atOnce())
}
