package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// helpColumns is the largest width of help: longer lines are hard to read.
const helpColumns = 100

// helpWidth returns the width of help: COLUMNS if it is set, or else that of the terminal, or 80 without a terminal.
func (a *app) helpWidth() int {
	width, err := strconv.Atoi(variable(a.env, "COLUMNS"))
	if (err != nil || width <= 0) && a.columns != nil {
		width = a.columns()
	}
	if width <= 0 {
		width = usualColumns
	}
	return min(max(width, smallestColumns), helpColumns)
}

// help writes the help of a command, filled to helpWidth. The global flags have their own page: they are many, and matter to
// few calls.
func (a *app) help(cmd *cobra.Command, w io.Writer) {
	width := a.helpWidth()
	var b strings.Builder
	description := cmd.Long
	if description == "" {
		description = cmd.Short + "."
	}
	b.WriteString(paragraphs(description, width) + "\n")
	switch {
	case !cmd.HasParent():
		fmt.Fprintf(&b, "Usage: %s COMMAND [flags]\n", program)
		for _, g := range cmd.Groups() {
			b.WriteString("\n" + g.Title + "\n" + commandList(cmd, func(c *cobra.Command) bool { return c.GroupID == g.ID }))
		}
		b.WriteString("\n" + paragraphs("Also: version, completion SHELL, help COMMAND, help options (the flags of all commands), help exit-status", width))
	case cmd.IsAdditionalHelpTopicCommand():
		if cmd.Name() == optionsTopic {
			b.WriteString("\n" + cmd.Root().PersistentFlags().FlagUsagesWrapped(width))
		}
	default:
		b.WriteString("Usage:\n")
		if cmd.Runnable() {
			b.WriteString("  " + cmd.UseLine() + "\n")
		}
		if cmd.HasAvailableSubCommands() {
			fmt.Fprintf(&b, "  %s COMMAND\n\nCommands:\n%s", cmd.CommandPath(), commandList(cmd, func(*cobra.Command) bool { return true }))
		}
		if cmd.HasExample() {
			b.WriteString("\nExamples:\n" + cmd.Example + "\n")
		}
		b.WriteString("\nFlags:\n" + cmd.LocalNonPersistentFlags().FlagUsagesWrapped(width))
		b.WriteString("\nGlobal flags: " + program + " help options\n")
		if cmd.HasAvailableSubCommands() {
			fmt.Fprintf(&b, "A command's help: %s COMMAND --help\n", cmd.CommandPath())
		}
	}
	_, _ = io.WriteString(w, b.String()) // as cobra's own help
}

// commandList lists the commands below one, with their purposes.
func commandList(cmd *cobra.Command, listed func(*cobra.Command) bool) string {
	var b strings.Builder
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && listed(c) {
			fmt.Fprintf(&b, "  %-*s %s\n", c.NamePadding(), c.Name(), c.Short)
		}
	}
	return b.String()
}

// paragraphs breaks the paragraphs of a text after at most width characters. Lines that begin with a blank stay as they are.
func paragraphs(text string, width int) string {
	var b strings.Builder
	at := 0 // characters in the current line
	end := func() {
		if at > 0 {
			b.WriteByte('\n')
			at = 0
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, " ") {
			end()
			b.WriteString(line + "\n")
			continue
		}
		for word := range strings.FieldsSeq(line) {
			n := utf8.RuneCountInString(word)
			switch {
			case at > 0 && at+1+n > width:
				end()
			case at > 0:
				b.WriteByte(' ')
				at++
			}
			b.WriteString(word)
			at += n
		}
	}
	end()
	return b.String()
}

// newExitStatus returns the help topic about exit statuses.
func newExitStatus() *cobra.Command {
	return &cobra.Command{Use: "exit-status", Short: "Show the meaning of exit statuses", Long: exitHelp}
}

// newOptions returns the help topic about the flags of all commands. It has no Run, so cobra does not list it as a command.
func newOptions() *cobra.Command {
	return &cobra.Command{
		Use:   optionsTopic,
		Short: "Show the flags of all commands",
		Long:  "All commands have these flags, for the store, the limits of runs and the log. An environment variable sets a flag for all commands.",
	}
}

const optionsTopic = "options"
