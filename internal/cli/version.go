package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// protocolVersion is the version of the Agent Workflow Protocol that the engine speaks.
const protocolVersion = "1.0.0"

// version is set by release builds with -ldflags "-X …/internal/cli.version=1.2.3".
var version = ""

// buildFacts say what this binary is.
type buildFacts struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Protocol string `json:"protocol"`
}

func newVersion(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print version, commit, Go release and protocol version",
		Example: `  workflows-engine version
  workflows-engine version --json`,
		Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			facts := currentBuild()
			if asJSON {
				return writeEncoded(a.stdout, facts)
			}
			_, err := fmt.Fprintf(a.human, "workflows-engine %s\ncommit    %s\ngo        %s %s\nprotocol  AWP %s\n",
				facts.Version, facts.Commit, facts.Go, facts.Platform, facts.Protocol)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// currentBuild reads what the Go tool has put into the binary.
func currentBuild() buildFacts {
	facts := buildFacts{
		Version:  version,
		Commit:   "unknown",
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Protocol: protocolVersion,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return facts
	}
	if facts.Version == "" {
		facts.Version = info.Main.Version
	}
	changed := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			facts.Commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " (modified)"
		}
	}
	facts.Commit += changed
	return facts
}
