package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/activities/toolcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentfile"
	"github.com/workflows-engine/workflows-engine/internal/manifest"
)

func newTool(a *app) *cobra.Command {
	validate := &cobra.Command{
		Use:   "validate FILE",
		Short: "Validate a list of servers or step commands",
		Long: `Validate an operator's file: a manifest, which names the MCP servers of tool_call nodes under "mcpServers", or a list of the programs of
step nodes, under "stepCommands".`,
		Example: `  workflows-engine tool validate mcp.json
  workflows-engine tool validate steps.json`,
		Args: namedFile,
		RunE: func(_ *cobra.Command, args []string) error { return a.validateTools(args[0]) },
	}
	check := &cobra.Command{
		Use:   "check FILE",
		Short: "List the tools of the servers of a manifest",
		Long: `Connect to each server of a manifest and list its tools, by the rules of a run: commands must be allowed, and
secrets are resolved. Disabled servers are left out.`,
		Example: "  workflows-engine tool check mcp.json",
		Args:    namedFile,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.checkManifest(cmd.Context(), args[0]) },
	}
	return group(&cobra.Command{
		Use:   "tool",
		Short: "Check MCP servers and step commands",
		Long: `Check what performs tool_call and step nodes: the MCP servers of --mcp-config, and the programs of $WORKFLOW_ENGINE_STEP_COMMANDS,
one for each handler. A program reads a JSON document from standard input, and writes one to standard output.`,
	}, check, validate, newTryStepCommand(a))
}

// validateTools validates a manifest, or a list of step commands: whatever the member of the file says.
func (a *app) validateTools(file string) error {
	found := ""
	_, err := readOperatorFile(a, file, func(text []byte) (any, problem.Findings) {
		var written map[string]json.RawMessage
		_ = json.Unmarshal(text, &written) // the parser reports what is no JSON
		if _, steps := written["stepCommands"]; steps {
			commands, findings := manifest.ParseStepCommands(text)
			found = count(len(commands), "step command")
			return nil, findings
		}
		m, findings := manifest.Parse(text)
		if m != nil {
			found = count(len(m.Servers), "server") + ", " + count(len(m.Agents), "delegate agent")
		}
		return nil, findings
	})
	if err == nil {
		fmt.Fprintf(a.human, "OK: %s: %s\n", file, found)
	}
	return err
}

// namedFile checks that the argument is a file; standard input is rejected (spec: cli-and-config, 2).
func namedFile(cmd *cobra.Command, args []string) error {
	if err := exactly("FILE")(cmd, args); err != nil {
		return err
	}
	if args[0] == standardInput {
		return usage("%s requires a file, not standard input", cmd.CommandPath())
	}
	return nil
}

// maxOperatorFile is the limit of every parser of such a file, in bytes.
const maxOperatorFile = max(manifest.MaxBytes, agentfile.MaxBytes)

// readOperatorFile reads a file and prints its findings. An unreadable file counts as invalid, which the protocol gives exit status 1.
func readOperatorFile[T any](a *app, file string, parse func([]byte) (T, problem.Findings)) (parsed T, err error) {
	text, err := a.readBegin(file, maxOperatorFile+1)
	if err != nil {
		a.printError(err)
		return parsed, silent{exitFailed}
	}
	parsed, findings := parse(text)
	writeFindings(a.stderr, a.paint, checked{source: source{file: file, text: text}, findings: findings})
	if findings.HasErrors() {
		return parsed, silent{exitFailed}
	}
	return parsed, nil
}

// checkManifest connects to one server after another, in the order of their names.
func (a *app) checkManifest(ctx context.Context, file string) error {
	m, err := readOperatorFile(a, file, manifest.Parse)
	if err != nil {
		return err
	}
	c, err := a.flags.LoadLog(a.env)
	if err != nil {
		return err
	}
	tools, err := c.Tools(m, a.logger(c))
	if err != nil {
		return err
	}
	err = a.listServers(ctx, m, tools)
	return firstError(err, tools.Close())
}

func (a *app) listServers(ctx context.Context, m *manifest.Manifest, tools *toolcall.Executor) error {
	var failed error
	for _, name := range slices.Sorted(maps.Keys(m.Servers)) {
		if m.Servers[name].Disabled {
			fmt.Fprintf(a.human, "%s: disabled\n", name)
			continue
		}
		list, err := tools.Tools(ctx, name)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			a.say("%s %v\n", a.paint.bad("error:"), err)
			failed = silent{exitFailed}
			continue
		}
		fmt.Fprintf(a.human, "%s: %s\n", name, count(len(list), "tool"))
		var rows [][]string
		for _, tool := range list {
			rows = append(rows, []string{"  " + tool.Name, cut(tool.Description, 80)})
		}
		if err := writeTable(a.human, rows); err != nil {
			return err
		}
	}
	return failed
}
