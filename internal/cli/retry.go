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
		Short: "Retry a failed run",
		Long: `Start a new run with the history of a failed one up to the failed node, and drive it. Finished activities are not repeated, and a
map keeps the items that succeeded before the first failure. A failed subworkflow starts again.

A run that failed inside an agent continues after the last result of the agent: finished calls are not repeated, and a call that may
have started is repeated, if at all, under its first key (docs/agents.md). --anew starts the agent again; if it has called tools with
effects, --repeat-effects is required, too. With --agent-config current, an agent that used up its budget continues with the models,
prices, budgets, retries and fallback of the current list.

A run that failed at a limit continues at the same place: raise the limit first. A run that was rolled back starts before the first
node that was undone.

The failed run does not change. With --definition the new run follows a corrected definition, which must lead to the same history;
--state corrects the state before the node (a JSON merge patch). To start at any other place, use fork.`,
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
	cmd.Flags().BoolVar(&o.anew, "anew", false, "start the failed node again, even if its agent can continue")
	cmd.Flags().BoolVar(&o.repeatEffects, "repeat-effects", false, "repeat calls of agents that have effects, under new keys")
	cmd.Flags().StringVar(&o.agentConfig, flagAgentConfig, configRecorded, "continue agents with this `configuration` of models and budgets: recorded or current")
	if err := cmd.RegisterFlagCompletionFunc(flagAgentConfig, cobra.FixedCompletions([]cobra.Completion{configRecorded, configCurrent}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag
	}
	cmd.Flags().BoolVar(&o.again, "again", false, "start another retry even if one is active or completed")
	return cmd
}

// retry starts a run from before the failure of another one, and drives it.
func (a *app) retry(ctx context.Context, id string, o forkOptions) error {
	if o.agentConfig != configRecorded && o.agentConfig != configCurrent {
		return usage("invalid value %q for --agent-config", o.agentConfig).WithHint("Write current for the agent's models and budgets of today, or leave it out.")
	}
	return a.forked(ctx, o, graph.ForkRequest{
		ExecutionID: id, Again: o.again, Anew: o.anew, RepeatEffects: o.repeatEffects, CurrentAgentConfig: o.agentConfig == configCurrent,
	})
}

// currentConfig are the flags of a retry that continues an agent with a used-up budget.
var currentConfig = []string{"--" + flagAgentConfig, configCurrent}
