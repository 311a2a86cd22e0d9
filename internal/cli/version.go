package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/internal/buildstamp"
)

// protocolVersion is the version of the Agent Workflow Protocol that the engine speaks.
const protocolVersion = "1.0.0"

// buildFacts describe this binary.
type buildFacts struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Date     string `json:"date"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Protocol string `json:"protocol"`
}

func newVersion(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  workflows-engine version
  workflows-engine version --json`,
		Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			facts := currentBuild()
			if asJSON {
				return writeEncoded(a.stdout, facts)
			}
			_, err := fmt.Fprintf(a.human, "workflows-engine %s\ncommit    %s\ndate      %s\ngo        %s %s\nprotocol  AWP %s\n",
				facts.Version, facts.Commit, facts.Date, facts.Go, facts.Platform, facts.Protocol)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// currentBuild returns the facts of this binary.
func currentBuild() buildFacts {
	stamp := buildstamp.Read()
	return buildFacts{
		Version:  stamp.Version,
		Commit:   stamp.Commit,
		Date:     stamp.Date,
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Protocol: protocolVersion,
	}
}
