package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/internal/manifest"
)

func newStepCommands(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "step-commands",
		Short: "Check a list of the programs that perform steps",
		Long: `Look after the list that $WORKFLOW_ENGINE_STEP_COMMANDS names: the programs that perform step nodes, one for
each handler. Such a program gets a JSON document on standard input and answers with one on standard output.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(*cobra.Command, []string) error {
			return usage("step-commands needs a command").WithHint("See workflows-engine step-commands --help.")
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use:     "validate FILE",
		Short:   "Say what is wrong in a list of step commands, and where",
		Example: "  workflows-engine step-commands validate steps.json",
		Args:    namedFile,
		RunE:    func(_ *cobra.Command, args []string) error { return a.validateStepCommands(args[0]) },
	})
	return cmd
}

// validateStepCommands prints what is wrong with a list.
func (a *app) validateStepCommands(file string) error {
	text, err := a.readFile(file)
	if err != nil {
		a.printError(err)
		return silent{exitFailed}
	}
	commands, findings := manifest.ParseStepCommands(text)
	writeFindings(a.stderr, a.paint, checked{source: source{file: file, text: text}, findings: findings})
	if findings.HasErrors() {
		return silent{exitFailed}
	}
	fmt.Fprintf(a.human, "OK: %s: %s\n", file, count(len(commands), "step command"))
	return nil
}
