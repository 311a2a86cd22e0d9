package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
)

func newRetry(a *app) *cobra.Command {
	var o forkOptions
	cmd := &cobra.Command{
		Use:   "retry ID",
		Short: "Start a new run from before the failure of another one",
		Long: `Start a new run with the past of a failed one up to before the node that failed, and drive it. What the failed run has done
before is not done again; of a map, items that had succeeded before the first failure are kept. A node that failed as a subworkflow starts its subworkflow
anew. A run that failed inside an agent goes on after the last result that the agent had: calls that were made are not made again, and a call that
may have been begun is made again, if at all, under its first key (docs/agents.md). --anew begins the agent from its start; if it has called tools
that do more than read, that takes --repeat-effects too. An agent whose budget is used up goes on with --agent-config current, once the list of agents
has a higher one: it then has the models, prices, budgets, retries and fallback of that list, and all else as it was. A run that failed at a limit goes on from where it was: raise the limit. One that was rolled back is tried again from before the first node
that was undone.

The failed run is not changed. With --definition the new run follows a corrected definition, which must lead to the same past; --state
corrects the state before the node (a JSON merge patch).
fork begins at any other place.`,
		Example: `  workflows-engine retry order-17
  workflows-engine retry order-17 --definition corrected.workflow.json
  workflows-engine retry order-17 --state '{"amount":17}'
  workflows-engine retry order-17 --agent-config current
  workflows-engine retry order-17 --max-visits 50000 --id second-try`,
		Args:              exactly("ID"),
		ValidArgsFunction: a.completeIDs(history.PhaseFailed),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.corrects = cmd.Flags().Changed("state")
			return a.retry(cmd.Context(), args[0], o)
		},
	}
	registerFork(cmd.Flags(), &o)
	cmd.Flags().BoolVar(&o.anew, "anew", false, "begin the node that failed from its start, also where an agent could go on")
	cmd.Flags().BoolVar(&o.repeatEffects, "repeat-effects", false, "allow that calls of agents which do more than read are made again, under other keys")
	cmd.Flags().StringVar(&o.agentConfig, flagAgentConfig, configRecorded, "the `configuration` of models and budgets with which an agent goes on: recorded, or current")
	if err := cmd.RegisterFlagCompletionFunc(flagAgentConfig, cobra.FixedCompletions([]cobra.Completion{configRecorded, configCurrent}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag
	}
	cmd.Flags().BoolVar(&o.again, "again", false, "begin another retry although one is open or has completed")
	return cmd
}

// retry starts a run from before the failure of another one and drives it.
func (a *app) retry(ctx context.Context, id string, o forkOptions) error {
	if o.agentConfig != configRecorded && o.agentConfig != configCurrent {
		return usage("--agent-config is %q", o.agentConfig).WithHint("Write current, for the models and budgets that the agent has now, or leave it out.")
	}
	return a.forked(ctx, o, graph.ForkRequest{
		ExecutionID: id, Again: o.again, Anew: o.anew, RepeatEffects: o.repeatEffects, CurrentAgentConfig: o.agentConfig == configCurrent,
	})
}

// currentConfig are the flags of a retry in which an agent goes on whose budget is used up.
var currentConfig = []string{"--" + flagAgentConfig, configCurrent}
