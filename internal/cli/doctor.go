package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/doctor"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/mcphost"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

func newDoctor(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Diagnose MCP host configuration",
		Long: `Check the settings, the database, and the configuration files of installed MCP hosts, for you and for the project in the current
directory. The server in each file is started as the host starts it: without the variables of your shell and, for hosts with a
window, with a PATH of /usr/bin:/bin. A server with an address is asked for its health. While it runs, a started server opens the
database and continues runs.

Exit status: 0 without problems, 1 with problems. Warnings do not count.`,
		Example: `  workflows-engine doctor
  workflows-engine doctor --json | jq -r '.findings[] | select(.level == "problem") | .fix'`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func (a *app) doctor(ctx context.Context, asJSON bool) error {
	var r doctor.Report
	shell := a.examineSettings(ctx, &r)
	if a.backend == nil {
		a.examineHosts(ctx, &r, shell)
	}
	if asJSON {
		if err := writeEncoded(a.stdout, jsonvalue.Ordered{{"ok", r.Problems() == 0}, {"findings", r.Findings}}); err != nil {
			return err
		}
	} else {
		a.printFindings(&r)
	}
	if r.Problems() > 0 {
		return silent{exitFailed}
	}
	return nil
}

// examineHosts checks the configuration of the installed hosts.
func (a *app) examineHosts(ctx context.Context, r *doctor.Report, shell *config.Config) {
	named := 0
	for _, h := range mcphost.Known() {
		for _, scope := range []mcphost.Scope{mcphost.User, mcphost.Project} {
			named += a.examineHost(ctx, r, shell, h, scope)
		}
	}
	if named == 0 {
		var titles []string
		installed := false
		for _, h := range mcphost.Known() {
			titles, installed = append(titles, h.Title), installed || h.Installed(a.machine())
		}
		if installed {
			r.Add(doctor.Warning, doctor.HostNone, "hosts", program+" install", "the server is not registered with a host")
		} else { // install would find none either
			r.Add(doctor.Warning, doctor.HostNone, "hosts",
				"Install a host, such as "+problem.OrList(titles)+", then run workflows-engine install. For other hosts, "+
					"workflows-engine install --host claude-desktop --print prints the common form.", "no MCP host was found")
		}
		if file, err := a.serverFile(""); err != nil {
			r.AddError(doctor.ServerMissing, server, err, "")
		} else {
			r.Serve(ctx, doctor.Start{
				Home: a.env.Home, Version: currentBuild().Version, Subject: server, Command: file, Directory: a.env.Home,
				Reinstall: "Put both programs of one release into one directory.",
			})
		}
	}
}

// examineSettings checks the settings of this shell and its database. It returns nil if the settings are invalid.
func (a *app) examineSettings(ctx context.Context, r *doctor.Report) *config.Config {
	if a.env.Home == "" {
		r.Add(doctor.Warning, doctor.HomeMissing, "shell", "Set HOME.", "the home directory is unknown")
	}
	c, err := a.flags.Load(a.env)
	if err != nil {
		r.AddError(doctor.Settings, "shell", err, "")
		return nil
	}
	examineExecutors(r, "shell", c)
	examineAgents(r, "shell", c)
	r.Workflows("shell", c)
	if a.backend != nil {
		a.backend.Diagnose(ctx, c, r)
		return c
	}
	r.Store(ctx, c, a.now())
	return c
}

// examineExecutors builds the executors, and reports them.
func examineExecutors(r *doctor.Report, subject string, c *config.Config) {
	for _, warning := range c.Warnings {
		if c.OtherStorePath == "" || !strings.Contains(warning, c.OtherStorePath) { // the other database has its own finding
			r.Add(doctor.Warning, doctor.Settings, subject, "Correct the setting or remove it.", "%s", warning)
		}
	}
	executors, err := c.Executors()
	if err != nil {
		r.AddError(doctor.Executors, subject, err, "")
		return
	}
	defer executors.Close() // nothing has been started
	routing := strings.Join(executors.Routing(), "; ")
	if c.Store != config.Elsewhere && strings.Contains(routing, "=missing") {
		routing += "; the model in the host performs other nodes (workflow_submit_activity)"
	}
	r.Add(doctor.OK, doctor.Executors, subject, "", "%s", routing)
	if n := len(c.Signing.Keys); n > 0 || c.Signing.Mode != "" {
		r.Add(doctor.OK, doctor.Signatures, subject, "", "signatures of definitions: %s, %s", c.Signing.Mode, count(n, "key"))
	}
}

// examineAgents reports the agents of the engine. Errors in their list, such as a missing secret or server, are reported as an error of
// the settings, with each place.
func examineAgents(r *doctor.Report, subject string, c *config.Config) {
	if names := c.AgentNames(); len(names) > 0 {
		r.Add(doctor.OK, doctor.Agents, subject, "", "%s: %s", count(len(names), "agent"), cut(strings.Join(names, ", "), detailWidth))
	}
}

// examineHost checks one file of a host, and returns how many of our servers it registers.
func (a *app) examineHost(ctx context.Context, r *doctor.Report, shell *config.Config, h mcphost.Host, scope mcphost.Scope) (named int) {
	file, err := h.File(a.machine(), scope)
	if err != nil {
		return 0
	}
	if user, err := h.File(a.machine(), mcphost.User); err == nil && user == file && scope == mcphost.Project {
		return 0 // this is the home directory
	}
	content, err := mcphost.Read(file)
	if err == nil && !content.Exists {
		return 0
	}
	var entries map[string]mcphost.Entry
	if err == nil {
		entries, err = h.Entries(file, content.Text)
	}
	if err != nil {
		r.AddError(doctor.HostFile, h.Title, err, "")
		return 0
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e := entries[name]
		subject := fmt.Sprintf("%s (%s, %s)", h.Title, name, file)
		if e.URL != "" && name == defaultName { // another name may belong to another server
			named++
			r.Address(ctx, subject, e.URL)
		}
		if !e.Starts() {
			continue
		}
		named++
		reinstall := shellword.Line(program, "install", "--host", h.Name)
		directory := a.env.Home
		if scope == mcphost.Project {
			reinstall += " --scope project"
			directory = a.env.Directory
		}
		if name != defaultName {
			reinstall += " --name " + shellword.Quote(name)
		}
		shellPath := ""
		if h.Terminal {
			shellPath = a.env.Variable("PATH")
		}
		a.examineServer(ctx, r, shell, doctor.Start{
			Path: shellPath, Subject: subject, Command: e.Command, Args: e.Args, Env: e.Env,
			Directory: directory, Reinstall: reinstall,
		})
	}
	return named
}

// examineServer checks the settings that a host gives a server, and starts it.
func (a *app) examineServer(ctx context.Context, r *doctor.Report, shell *config.Config, s doctor.Start) {
	s.Home, s.Version = a.env.Home, currentBuild().Version
	set := pflag.NewFlagSet(server, pflag.ContinueOnError)
	set.ParseErrorsAllowlist.UnknownFlags = true // the server checks them
	flags := config.RegisterServer(set)
	env := a.env
	env.Variables, env.Directory = s.Environ(), s.Directory
	if set.Parse(s.Args) == nil {
		if c, err := flags.Load(env); err == nil {
			a.examineStart(r, shell, s, c)
		}
	}
	r.Serve(ctx, s)
}

// examineStart compares the settings of a host's server with those of this shell, and looks up the programs that they name.
func (a *app) examineStart(r *doctor.Report, shell *config.Config, s doctor.Start, c *config.Config) {
	if shell == nil || !slices.Equal(c.AgentNames(), shell.AgentNames()) {
		examineAgents(r, s.Subject, c)
	}
	if shell != nil && c.Location() != shell.Location() {
		r.Add(doctor.Warning, doctor.DatabaseDiffers, s.Subject, s.Reinstall+" -- "+shellword.Line(shell.StoreFlags()...),
			"its server uses %s, this shell %s", storeName(c), storeName(shell))
	}
	if shell == nil || c.WorkflowDir != shell.WorkflowDir {
		r.Workflows(s.Subject, c)
	}
	if c.Manifest == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.Manifest.Servers)) {
		if command := c.Manifest.Servers[name].Command; command != "" && !c.Manifest.Servers[name].Disabled && s.Find(command) == "" {
			r.Add(doctor.Warning, doctor.Program, s.Subject, s.Reinstall+" --env PATH=\"$PATH\"",
				"%q of tool server %q is not in the PATH of the host", command, name)
		}
	}
}

// storeName names the store of a configuration.
func storeName(c *config.Config) string {
	if c.Store == config.Memory {
		return "memory"
	}
	return c.Location()
}

// printFindings prints the findings, the problems last.
func (a *app) printFindings(r *doctor.Report) {
	marks := map[doctor.Level]string{doctor.OK: a.paint.good("ok"), doctor.Warning: a.paint.wait("warning"), doctor.Problem: a.paint.bad("problem")}
	for _, level := range []doctor.Level{doctor.OK, doctor.Warning, doctor.Problem} {
		for _, f := range r.Findings {
			if f.Level != level {
				continue
			}
			fmt.Fprintf(a.human, "%s%s %s: %s\n", marks[level], strings.Repeat(" ", len("warning")-len(level)), f.Subject, f.Message)
			if f.Fix != "" {
				fmt.Fprintf(a.human, "        fix: %s\n", commandHint(f.Fix, ""))
			}
		}
	}
	if n := r.Problems(); n > 0 {
		fmt.Fprintf(a.human, "%s\n", count(n, "problem"))
	}
}
