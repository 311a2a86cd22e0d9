package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

type watchOptions struct {
	driveOptions
	folder string
	// untilRest ends the command also when the run needs input.
	untilRest bool
}

func newWatch(a *app) *cobra.Command {
	var o watchOptions
	cmd := &cobra.Command{
		Use:   "watch ID",
		Short: "Follow a run that another process drives",
		Long: `Follow a run until it has ended, whichever process drives it, and change nothing. On a terminal a tree of the run is redrawn:
current work with its start, branches, items of maps, attempts, timers, subworkflows. Elsewhere each event is a line.

The result goes to standard output, as run prints it. With --until-rest the command also ends where the run waits for a person, a
signal or a host, or for what no process performs, with status 3.`,
		Example: `  workflows-engine watch order-17
  workflows-engine watch order-17 --until-rest --wait 10m
  workflows-engine watch order-17 --json | jq .status`,
		Args:              exactly("ID"),
		ValidArgsFunction: a.completeIDs(""),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.watch(cmd.Context(), args[0], o) },
	}
	set := cmd.Flags()
	config.RegisterWorkflowDir(set, &o.folder, "none")
	set.BoolVar(&o.untilRest, "until-rest", false, "stop also when the run needs input")
	registerWait(set, &o.wait)
	set.BoolVar(&o.json, "json", false, "print the status of the run as JSON instead of its result")
	return cmd
}

// statusInterval is how long one call waits for a change of the run.
const statusInterval = 30 * time.Second

// claimTime is how long --until-rest leaves an orphaned run to live workers, which claim one within seconds.
const claimTime = 15 * time.Second

// watch follows a run.
func (a *app) watch(ctx context.Context, id string, o watchOptions) error {
	return a.with(ctx, sessionOptions{store: readOnlyStore, executors: optionalExecutors, display: showWatchedTree, shown: id, folder: o.folder}, func(s *session) error {
		d := a.drive(s, o.driveOptions)
		run, err := s.engine.Status(ctx, graph.StatusRequest{ExecutionID: id})
		var orphaned time.Time // since when a process could claim a part of the run
		for err == nil && !run.Status.Terminal() && ctx.Err() == nil && d.left() > 0 && !(o.untilRest && rests(run)) {
			limit := statusInterval
			if o.untilRest && s.hasOrphan(ctx, run) {
				if orphaned.IsZero() {
					orphaned = a.now()
				}
				if a.now().Sub(orphaned) >= claimTime {
					break
				}
				limit = time.Second
			} else {
				orphaned = time.Time{}
			}
			var next *view.Run
			if next, err = d.change(ctx, run, limit); err == nil {
				run = next
			}
		}
		s.view.settle(run)
		switch {
		case ctx.Err() != nil:
			goesOn := "continues"
			if run != nil && awaited(run) != nil {
				goesOn = "is still waiting"
			}
			a.say("\nstopped watching; run %s %s\n", id, goesOn)
			d.printNextCommands(ctx, id)
			return silent{exitInterrupted}
		case err != nil:
			return err
		case run.Status.Terminal():
			return d.ended(ctx, run)
		}
		return d.paused(ctx, run)
	})
}

// hasOrphan reports whether a part of a run has no owner and waits for a process with the executors of this one. An error counts as no: the next
// status has it, too.
func (s *session) hasOrphan(ctx context.Context, run *view.Run) bool {
	r, ok := s.engine.(graph.Recoverer)
	if !ok {
		return false
	}
	found, err := r.Survey(ctx, run.Executions()...)
	return err == nil && len(found.ExecutionIDs) > 0
}

// rests reports whether a run needs input, an executor that is missing, or a worker that does not exist.
func rests(run *view.Run) bool {
	return awaited(run) != nil || run.Lacks != nil && !run.Lacks.Host || run.Ready != nil && run.Ready.Workers == 0
}
