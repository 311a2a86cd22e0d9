package cli

import (
	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/authoring"
)

func newGuide(a *app) *cobra.Command {
	topics := authoring.Topics()
	return &cobra.Command{
		Use:   "guide [TOPIC]",
		Short: "Show the authoring guide",
		Long: `Show a page on writing definitions. A terminal shows it page by page with $PAGER, or less; elsewhere it is printed in Markdown, as the
tool workflow_guide gives it to models.
The pages are the sections of docs/workflows.md, docs/recipes.md and docs/reference/language.md.
The topics are ` + problem.AndList(topics) + `.`,
		Example: `  workflows-engine guide
  workflows-engine guide map
  workflows-engine guide recipes`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return topics, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactly("at most one TOPIC")(cmd, args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			topic := authoring.MainTopic
			if len(args) > 0 {
				topic = args[0]
			}
			page := authoring.Page(topic)
			if page == "" {
				return usage("unknown topic %q", topic).WithHint("%s", authoring.TopicHint(topic))
			}
			return a.page(a.render(page))
		},
	}
}
