package cli

import (
	"github.com/spf13/cobra"
)

// usageTemplate is what the help of a command says behind its description. The global flags are many, and matter to few commands: they have
// a page of their own.
const usageTemplate = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Available Commands:{{range .Commands}}{{if or .IsAvailableCommand (eq .Name "help")}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}

Flags:
{{.LocalNonPersistentFlags.FlagUsages | trimTrailingWhitespaces}}

Global flags: ` + program + ` help options{{if .HasAvailableSubCommands}}
Use "{{.CommandPath}} [command] --help" for more information about a command.{{end}}
`

// newOptions is the page on the flags that all commands have. It is no command: cobra knows it as a topic of help.
func newOptions(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "The flags that all commands have",
		Long: `These flags go with every command: where runs are kept, what a run may take, what is logged. The environment variable
behind a flag says the same for all commands.

` + root.PersistentFlags().FlagUsages(),
	}
}
