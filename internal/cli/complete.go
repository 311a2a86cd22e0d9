package cli

import (
	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/history"
)

// completeIDs completes a command's first argument with the ids of stored runs, those in the phase if one is given.
func (a *app) completeIDs(phase history.Phase) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := a.flags.LoadStore(a.env)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		store, err := c.OpenStoreToRead(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		page, err := store.List(cmd.Context(), history.ListQuery{Phase: phase, Limit: 100})
		if closing(store, err) != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var ids []string
		for _, e := range page.Executions {
			ids = append(ids, cobra.CompletionWithDesc(e.ID, e.DefinitionName+", "+string(e.Phase)))
		}
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
