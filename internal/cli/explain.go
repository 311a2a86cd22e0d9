package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/internal/authoring"
)

func newExplain(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [CODE]",
		Short: "Explain an error code",
		Long: `Explain a code: when it occurs, and how to fix it; for some codes of definitions with an example. Without a code,
list all codes by group. docs/reference/codes.md has the same text.`,
		Example: `  workflows-engine explain GRAPH_ENDLESS_LOOP
  workflows-engine explain`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var codes []cobra.Completion
			for _, g := range authoring.CodeGroups() {
				for _, c := range g.Codes {
					codes = append(codes, cobra.CompletionWithDesc(c.Name, c.When))
				}
			}
			if len(args) > 0 {
				codes = nil
			}
			return codes, cobra.ShellCompDirectiveNoFileComp
		},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactly("at most one CODE")(cmd, args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := codesText(a.columns()), error(nil)
			if len(args) > 0 {
				text, err = codeText(args[0])
				text = a.render(text)
			}
			if err != nil {
				return err
			}
			return a.page(text)
		},
	}
}

// codeText explains one code, in Markdown.
func codeText(name string) (string, error) {
	c, near, ok := authoring.FindCode(name)
	if !ok {
		e := usage("unknown code %q", name)
		if near != "" {
			return "", e.WithHint("Did you mean %s? %s explain lists all codes.", near, program)
		}
		return "", e.WithHint("%s explain lists all codes. Hosts and executors may use other codes.", program)
	}
	parts := []string{c.Name, c.When, "What to do: " + c.Do}
	if c.Wrong != "" {
		parts = append(parts, "Wrong, between a node begin and a node finish:", fencedYAML(c.Wrong), "Right:", fencedYAML(c.Right))
	}
	return strings.Join(parts, "\n\n") + "\n", nil
}

func fencedYAML(text string) string { return "```yaml\n" + strings.TrimSpace(text) + "\n```" }

// codeWidth bounds the description of a code in the list.
const codeWidth, minCodeWidth = 90, 20

// codesText lists all codes by group. For a terminal of width characters it cuts longer lines; 0 is no terminal.
func codesText(width int) string {
	var b strings.Builder
	for i, g := range authoring.CodeGroups() {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintln(&b, g.Title)
		rows, room := make([][]string, len(g.Codes)), codeWidth
		for _, c := range g.Codes {
			room = max(min(room, width-len(c.Name)-len("    ")), minCodeWidth)
		}
		for k, c := range g.Codes {
			when := c.When
			if width > 0 {
				when = cut(when, room)
			}
			rows[k] = []string{"  " + c.Name, when}
		}
		_ = writeTable(&b, rows) // memory takes all
	}
	return b.String()
}
