// Package agentdemo is shared by the programs of the examples with agents: an endpoint that plays a script, or the user's own, an MCP
// server, which is the program started again, and the commands of workflows-engine, called as an operator would.
package agentdemo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/cli"
)

// Demo is a program that runs a workflow with agents.
type Demo struct {
	// Name is that of the example, of its definition NAME.workflow.yaml and of the temporary folder.
	Name string
	// Files holds the definition, agents.json with the folders that it names and, if the program knows -cases, cases.json.
	Files fs.FS
	// Input is that of the run.
	Input map[string]any
	// Script are the replies for users without a model.
	Script []Reply
	// Server is the name of the MCP server in agents.json, Tools adds its tools. It may keep files in the folder.
	Server string
	Tools  func(s *mcp.Server, folder string)
	// Answer is a person's, as JSON, if one is asked.
	Answer string
	// KillAt is the number of the request to the model that kills the engine, which is then started again; 0 means never.
	KillAt int
}

// The arguments that make the program an MCP server, or a command of workflows-engine in a process of its own.
const (
	serveArgument  = "serve-tools"
	engineArgument = "engine"
)

// statusPaused is the exit status of a command whose run waits for an answer.
const statusPaused = 3

// Main is the program: it ends with its exit status.
func (d *Demo) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	switch {
	case len(os.Args) == 3 && os.Args[1] == serveArgument:
		server := mcp.NewServer(&mcp.Implementation{Name: d.Server, Version: "1.0.0"}, nil)
		d.Tools(server, os.Args[2])
		_ = server.Run(ctx, &mcp.StdioTransport{}) // until the engine closes it
		return
	case len(os.Args) > 1 && os.Args[1] == engineArgument:
		os.Exit(cli.Main(ctx, os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	var cases bool
	if _, err := fs.Stat(d.Files, "cases.json"); err == nil {
		flag.BoolVar(&cases, "cases", false, "run the cases of cases.json and print how they end")
	}
	flag.Parse()
	status, err := d.run(ctx, cases)
	if err != nil {
		fmt.Fprintln(os.Stderr, "live:", err)
		status = 1
	}
	os.Exit(status)
}

// stage is the environment of the commands of one call of the program.
type stage struct {
	demo                 *Demo
	folder, program      string
	database, definition string
	agents, manifest     string
	model                *endpoint
}

func (d *Demo) run(ctx context.Context, cases bool) (int, error) {
	s, err := d.prepare()
	if err != nil {
		return 1, err
	}
	defer s.model.stop()
	fmt.Fprintf(os.Stderr, "model   %s\ntools   %s, an MCP server over stdio: this program, started again\n", s.model.said, d.Server)
	if cases {
		return s.cases(ctx)
	}
	s.model.play(d.Script)
	id := d.Name + "-" + strings.ToLower(rand.Text()[:8])
	input, err := json.Marshal(d.Input)
	if err != nil {
		return 1, err
	}
	receiver, stop, err := openHook()
	if err != nil {
		return 1, err
	}
	defer stop()
	status, err := s.killed(ctx, "run", s.definition, "--id", id, "--notify", "office", "--input", string(input))
	if err != nil {
		return 1, err
	}
	if status < 0 { // another process continues it
		if err := s.endLease(ctx, id); err != nil {
			return 1, err
		}
		status = s.command(ctx, "recover", id)
	}
	events := 1
	for status == statusPaused && d.Answer != "" {
		events++
		status = s.command(ctx, "resume", id, "--payload", d.Answer)
	}
	worst := status
	for _, command := range [][]string{{"history", id}, {"agent", "transcript", id}} {
		worst = max(worst, s.command(ctx, command...))
	}
	receiver.print(os.Stdout, events)
	return worst, nil
}

// prepare writes the settings into a new folder, and starts the endpoint.
func (d *Demo) prepare() (*stage, error) {
	folder, err := os.MkdirTemp("", d.Name+"-live-")
	if err != nil {
		return nil, err
	}
	s := &stage{demo: d, folder: folder, database: filepath.Join(folder, "runs.db"), agents: filepath.Join(folder, "agents.json"), manifest: filepath.Join(folder, "mcp.json")}
	s.definition = filepath.Join(folder, d.Name+".workflow.yaml")
	if s.program, err = os.Executable(); err != nil {
		return nil, err
	}
	if s.model, err = openEndpoint(); err != nil {
		return nil, err
	}
	servers, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]any{
		d.Server: map[string]any{"command": s.program, "args": []string{serveArgument, folder}},
	}}, "", "  ")
	agents, agentsErr := fs.ReadFile(d.Files, "agents.json")
	err = errors.Join(
		err, agentsErr, os.CopyFS(folder, d.Files), os.WriteFile(s.manifest, servers, 0o600),
		os.WriteFile(s.agents, bytes.ReplaceAll(agents, []byte(`"small-and-fast"`), s.model.name()), 0o600),
		os.Setenv("WORKFLOW_ENGINE_LLM_CONFIG", s.model.config), os.Setenv("WORKFLOW_ENGINE_MCP_CONFIG", s.manifest), os.Setenv("WORKFLOW_ENGINE_AGENTS", s.agents),
		os.Setenv("WORKFLOW_ENGINE_MCP_ALLOW_COMMANDS", s.program), // the engine starts only what the operator allows
	)
	if err != nil {
		s.model.stop()
	}
	return s, err
}

// command calls a command of workflows-engine.
func (s *stage) command(ctx context.Context, args ...string) int {
	args = append(args, "--store-path", s.database)
	show(args)
	return cli.Main(ctx, args, os.Stdin, os.Stdout, os.Stderr)
}

// killed calls a command in a process of its own, which is killed at a request to the model; the status is negative then.
func (s *stage) killed(ctx context.Context, args ...string) (int, error) {
	if s.demo.KillAt == 0 {
		return s.command(ctx, args...), nil
	}
	args = append(args, "--store-path", s.database)
	show(args)
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	cmd := exec.CommandContext(ctx, s.program, append([]string{engineArgument}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	s.model.at(s.demo.KillAt, func() {
		fmt.Fprintln(os.Stderr, "\n(kill -9, while the model is asked)")
		kill()
	})
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// endLease ends the lease of the process that was killed, which would end by itself half a minute later.
func (s *stage) endLease(ctx context.Context, id string) error {
	store, err := historysql.Open(ctx, s.database, historysql.Options{})
	if err != nil {
		return err
	}
	owner, err := store.Owner(ctx, id)
	if err == nil && owner.Process != "" {
		err = store.Release(ctx, owner.Process)
	}
	return errors.Join(err, store.Close())
}

// show shows a command as a shell takes it.
func show(args []string) {
	out := make([]string, len(args))
	for i, a := range args {
		if out[i] = a; strings.ContainsAny(a, " {}\"'") {
			out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	fmt.Fprintf(os.Stderr, "\n$ workflows-engine %s\n", strings.Join(out, " "))
}
