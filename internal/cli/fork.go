package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

type forkOptions struct {
	driveOptions
	folder, id string
	at         int64
	before     string
	correction string
	corrects   bool
	// again, anew and repeatEffects are flags of retry.
	again, anew, repeatEffects bool
	agentConfig                string
	allowMissing               bool
}

func newFork(a *app) *cobra.Command {
	var o forkOptions
	cmd := &cobra.Command{
		Use:   "fork ID --at SEQ | --before NODE",
		Short: "Fork a run",
		Long: `Start a new run with the history of another run up to a record, or up to the newest visit of a node, and drive it. The other
run does not change, whatever its state. history ID shows the records with their numbers.

The new run keeps the outcomes of activities, answers, signals, fired timers and ended subworkflows up to SEQ. Pending work
starts again: attempts under new idempotency keys, after their last journal entry; timers with their remaining time; subworkflows
from their start. The end of the run is not kept: fork a cancelled run at its last record to continue it, and a failed run at a
record before its failure to try again.

With --before, --state corrects the state of the new run: it is a JSON merge patch, so a field replaces the one in the
state, and null removes it.

With --definition the new run follows another definition, such as a corrected one. It must lead to the same history; otherwise the
fork is rejected with the first difference, and nothing is written.

If an executor for the rest of the run is missing here, the fork is rejected with a list; --allow-missing starts it for a process
that has the executor.`,
		Example: `  workflows-engine fork order-17 --at 41
  workflows-engine fork order-17 --before charge --state '{"amount":17}'
  workflows-engine fork order-17 --at 41 --definition corrected.workflow.json --id second-try`,
		Args:              exactly("ID"),
		ValidArgsFunction: a.completeIDs(""),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch at := cmd.Flags().Changed("at"); {
			case at && o.before != "":
				return usage("fork takes only one of --at and --before").WithHint("Leave one of them out.")
			case !at && o.before == "":
				return usage("fork requires --at or --before").
					WithHint("Write the last record to keep, or the node to start with; list them with %s.", shellword.Command([]string{program, "history"}, args))
			case at && cmd.Flags().Changed("state"):
				return usage("--state requires --before").WithHint("Write the node to start with.")
			}
			o.corrects = cmd.Flags().Changed("state")
			return a.fork(cmd.Context(), args[0], o)
		},
	}
	set := cmd.Flags()
	set.Int64Var(&o.at, "at", 0, "keep the records up to this `seq`")
	set.StringVar(&o.before, "before", "", "start the new run at the newest visit of this `node`")
	registerFork(set, &o)
	a.completeNodes(cmd, "before")
	return cmd
}

// registerFork adds the flags of commands that fork a run.
func registerFork(set *pflag.FlagSet, o *forkOptions) {
	set.StringVar(&o.correction, "state", "", "merge this patch into the state before the node: `JSON`, @file, or - for standard input")
	set.StringVar(&o.id, "id", "", "`id` of the new run (default a new one)")
	set.StringVar(&o.definition, flagDefinition, "", "`file` of the definition to follow instead of the run's own")
	set.BoolVar(&o.allowMissing, "allow-missing", false, "start even if an executor is missing here; another process may have it")
	config.RegisterWorkflowDir(set, &o.folder, "none")
	o.answers.register(set)
	registerWait(set, &o.wait)
	set.BoolVar(&o.json, "json", false, "print the status of the run as JSON")
}

// fork starts a run with the history of another one and drives it.
func (a *app) fork(ctx context.Context, id string, o forkOptions) error {
	if o.at < 1 && o.before == "" {
		return problem.New(problem.ValidationError, "run %q has no record %d", id, o.at).WithPlace(problem.Place{ExecutionID: id}).
			WithHint("Records are numbered from 1; see its history.")
	}
	return a.forked(ctx, o, graph.ForkRequest{ExecutionID: id, Seq: o.at, BeforeNode: o.before})
}

// forked makes a fork and drives the new run.
func (a *app) forked(ctx context.Context, o forkOptions, req graph.ForkRequest) error {
	caller, err := a.caller(o.driveOptions)
	if err != nil {
		return err
	}
	var correction map[string]any
	if o.corrects {
		if strings.TrimSpace(o.correction) == "" {
			return usage("--state must not be empty").WithHint("Write the fields to change, as in '{\"amount\":17}', or leave it out.")
		}
		if correction, err = a.readObject("--state", o.correction); err != nil {
			return err
		}
	}
	return a.with(ctx, sessionOptions{display: showTree, drives: true, folder: o.folder}, func(s *session) error {
		forker, err := graph.Need[graph.Forker](s.engine, "fork")
		if err != nil {
			return err
		}
		d := a.drive(s, o.driveOptions)
		d.ownWords = true
		req.NewExecutionID, req.Definition, req.Correction = o.id, caller.Definition, correction
		req.Wait, req.RequireCapable = d.caller.Wait, !o.allowMissing
		s.view.settle(nil) // the line below comes first
		run, err := forker.Fork(ctx, req)
		if err == nil {
			a.say("run %s continues run %s from %s\n", a.paint.bold(run.ExecutionID), req.ExecutionID, s.forkedAt(ctx, run, &req))
		}
		s.view.follow()
		return d.from(ctx, run, explainMissing(err, "", nil))
	})
}

// forkedAt describes where a new run continues another one.
func (s *session) forkedAt(ctx context.Context, run *view.Run, req *graph.ForkRequest) string {
	seq, node := run.ForkedFrom.Seq, req.BeforeNode
	if node == "" && req.Seq == 0 { // a retry
		next, err := s.engine.History(ctx, graph.HistoryRequest{ExecutionID: req.ExecutionID, FromSeq: seq + 1, Limit: 1})
		if err == nil && len(next) == 1 {
			if p := &next[0].Payload; next[0].Name == history.ActivityFailed && s.hasSeam(ctx, run.ExecutionID, seq+1) {
				return "the last step of the agent at node " + plainCell(p.NodeID)
			} else if node = p.NodeID; next[0].Name.Terminal() || next[0].Name == history.FailNode {
				node = ""
			}
		}
	}
	if node != "" {
		return "before node " + plainCell(node)
	}
	return fmt.Sprintf("record %d", seq)
}

// seamBack limits the search, from the end of the copied records, for the step with which the agent of a fork continues.
const seamBack = 50

// hasSeam reports whether an agent continued in a run after the failure of another one. upto is the last record to search.
func (s *session) hasSeam(ctx context.Context, id string, upto int64) bool {
	records, err := s.engine.History(ctx, graph.HistoryRequest{ExecutionID: id, FromSeq: max(1, upto-seamBack), Limit: seamBack + 1})
	return err == nil && slices.ContainsFunc(records, func(r history.Record) bool {
		_, kind, _, ok := r.Payload.Step()
		return ok && kind == agentsteps.Continued
	})
}
