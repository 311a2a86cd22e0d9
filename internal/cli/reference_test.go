package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestReferencePage: docs/reference/cli.md is the help of all commands.
func TestReferencePage(t *testing.T) {
	t.Parallel()
	a, _, _ := newTestApp(t, nil, noon)
	a.env.Variables = []string{"COLUMNS=100"}
	root := newRoot(a)
	var page strings.Builder
	page.WriteString("# Commands of workflows-engine\n\nFor users of a terminal and authors of scripts: the help of each command, as its flag `--help` " +
		"prints it. `make docs`\nwrites this page. [Settings](#flags-of-all-commands) and [exit statuses](#exit-statuses) come last.\n")
	show := func(cmd *cobra.Command) {
		var help bytes.Buffer
		a.help(cmd, &help)
		fmt.Fprintf(&page, "\n```text\n%s```\n", &help)
	}
	var section func(cmd *cobra.Command, level string)
	section = func(cmd *cobra.Command, level string) {
		cmd.InitDefaultHelpFlag()
		fmt.Fprintf(&page, "\n%s %s\n", level, strings.TrimPrefix(cmd.CommandPath(), program+" "))
		show(cmd)
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				section(c, "####")
			}
		}
	}
	for _, g := range root.Groups() {
		fmt.Fprintf(&page, "\n## %s\n", strings.TrimSuffix(g.Title, ":"))
		for _, c := range root.Commands() {
			if c.GroupID == g.ID && c.IsAvailableCommand() {
				section(c, "###")
			}
		}
	}
	for _, topic := range []struct{ name, title string }{{"options", "Flags of all commands"}, {"exit-status", "Exit statuses"}} {
		cmd, _, err := root.Find([]string{topic.name})
		if err != nil || !cmd.HasParent() {
			t.Fatalf("there is no topic %s (%v)", topic.name, err)
		}
		fmt.Fprintf(&page, "\n## %s\n", topic.title)
		show(cmd)
	}
	enginetest.RequireReference(t, "cli.md", page.String(), *update)
}
