package cli

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/history"
)

// completeIDs completes a command's first argument with the ids of stored runs, those in the phase if one is given.
func (a *app) completeIDs(phase history.Phase) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		s, err := a.open(cmd.Context(), sessionOptions{bare: true, read: true, log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		page, err := s.engine.List(cmd.Context(), history.ListQuery{Phase: phase, Limit: 100})
		if firstError(err, s.close()) != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var ids []string
		for _, e := range page.Executions {
			ids = append(ids, cobra.CompletionWithDesc(e.ID, e.DefinitionName+", "+string(e.Phase)))
		}
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
