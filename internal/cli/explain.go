package cli

import (
	"fmt"
	"io"
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
			if len(args) == 0 {
				return writeCodes(a.human)
			}
			return writeCode(a.human, args[0])
		},
	}
}

// writeCode explains one code.
func writeCode(w io.Writer, name string) error {
	c, near, ok := authoring.FindCode(name)
	if !ok {
		e := usage("unknown code %q", name)
		if near != "" {
			return e.WithHint("Did you mean %s? %s explain lists all codes.", near, program)
		}
		return e.WithHint("%s explain lists all codes. A host or an executor may have codes of its own.", program)
	}
	parts := []string{c.Name, c.When, "What to do: " + c.Do}
	if c.Wrong != "" {
		parts = append(parts, "Wrong, between a node begin and a node finish:\n\n"+indented(strings.TrimSpace(c.Wrong), "  "), "Right:\n\n"+indented(strings.TrimSpace(c.Right), "  "))
	}
	_, err := fmt.Fprintln(w, strings.Join(parts, "\n\n"))
	return err
}

// codeWidth bounds the description of a code in the list.
const codeWidth = 90

// writeCodes lists all codes by group.
func writeCodes(w io.Writer) error {
	for i, g := range authoring.CodeGroups() {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, g.Title)
		rows := make([][]string, len(g.Codes))
		for k, c := range g.Codes {
			rows[k] = []string{"  " + c.Name, cut(c.When, codeWidth)}
		}
		if err := writeTable(w, rows); err != nil {
			return err
		}
	}
	return nil
}
