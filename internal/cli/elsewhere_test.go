package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/doctor"
)

// far is an engine with nothing more than a Backend's engine must have.
type far struct {
	graph.Engine
	runner *graph.Runner
}

func (f far) Peek(ctx context.Context, id string) (history.Execution, error) {
	return f.runner.Peek(ctx, id)
}

func (f far) Definition(ctx context.Context, hash string) (*definition.Document, error) {
	return f.runner.Definition(ctx, hash)
}

func (far) Close() error { return nil }

const askingText = `{"document":{"schema":"urn:test","name":"asking","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"s","type":"start"},
{"id":"ask","type":"interrupt","config":{"prompt":"Go on?","resume_schema":{"type":"object","properties":{"yes":{"type":"boolean"}},"required":["yes"]}}},
{"id":"e","type":"end"}],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"ask"},{"source":"ask","target":"e"}]}`

// TestCommandsOverABackend: commands work on runs that are in no store, and those that need one say so.
func TestCommandsOverABackend(t *testing.T) {
	t.Parallel()
	runner, err := graph.New(historymem.New(), graph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { runner.Close() })
	file := filepath.Join(t.TempDir(), "asking.workflow.json")
	if err := os.WriteFile(file, []byte(askingText), 0o600); err != nil {
		t.Fatal(err)
	}
	do := func(args ...string) (status int, stdout, stderr string) {
		a, out, errs := newTestApp(t, strings.NewReader(""), time.Now())
		a.backend = &Backend{
			Program: engineProgram, Short: "Elsewhere", Long: "Elsewhere.",
			Register: func(set *pflag.FlagSet) config.Place {
				set.String("far-address", "", "address")
				return config.Place{Name: func() string { return "far" }, Flags: []string{"far-address"}}
			},
			Engine: func(context.Context, *config.Config, graph.Options) (graph.Engine, error) {
				return far{runner, runner}, nil
			},
			Diagnose: func(_ context.Context, _ *config.Config, r *doctor.Report) {
				r.Add(doctor.OK, "far", "far", "", "near enough")
			},
			Commands: func(*config.Flags) []*cobra.Command { return nil },
		}
		status = a.execute(t.Context(), args)
		return status, out.String(), errs.String()
	}
	status, stdout, stderr := do("run", file, "--id", "r", "--far-address", "there")
	if status != exitPaused || stdout != "" || !strings.Contains(stderr, "resume r ") || !strings.Contains(stderr, "--far-address there") {
		t.Errorf("run: status %d, %q\n%s", status, stdout, stderr)
	}
	for args, want := range map[string]string{
		"status r": "Go on?", "list": "interrupted", "history r": "ExecutionStarted", "graph r": "ask", "doctor": "near enough", "status r --json": `"interrupted"`,
	} {
		if status, stdout, stderr := do(strings.Fields(args)...); status != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("%s: status %d, %s\n%s", args, status, stdout, stderr)
		}
	}
	if status, _, stderr := do("status", "unknown"); status != exitFailed || !strings.Contains(stderr, "searched: far") {
		t.Errorf("an unknown run: status %d\n%s", status, stderr)
	}
	if status, stdout, stderr := do("resume", "r", "--payload", `{"yes":true}`); status != exitOK || !json.Valid([]byte(stdout)) {
		t.Errorf("resume: status %d, %s\n%s", status, stdout, stderr)
	}
	if status, _, stderr := do("watch", "r"); status != exitOK || !strings.Contains(stderr, "completed") {
		t.Errorf("watch: status %d\n%s", status, stderr)
	}
	if status, stdout, _ := do("run", file, "--id", "d", "--detach"); status != exitOK || stdout != "d\n" {
		t.Errorf("run --detach: status %d, %q", status, stdout)
	}
	if status, stdout, _ := do("cancel", "d"); status != exitOK || !strings.Contains(stdout, "cancelled") {
		t.Errorf("cancel: status %d, %q", status, stdout)
	}
	for _, args := range [][]string{
		{"recover"}, {"retry", "r"}, {"fork", "r", "--at", "2"}, {"gc", "--older-than", "1h"}, {"verify"}, {"store", "migrate"}, {"db", "verify"}, {"workers"}, {"queue"}, {"limits", "set"},
		{"export", "r"}, {"import", "f"}, {"webhooks", "list"}, {"handle", "r", "--note", "x"}, {"worker"},
	} {
		if status, stdout, stderr := do(args...); status != exitFailed || stdout != "" || !strings.Contains(stderr, "UNSUPPORTED_BY_BACKEND") {
			t.Errorf("%v: status %d, %s\n%s", args, status, stdout, stderr)
		}
	}
	if status, _, stderr := do("list", "--db", "x"); status != exitUsage {
		t.Errorf("--db: status %d\n%s", status, stderr)
	}
	if _, stdout, _ := do("--help"); strings.Contains(stdout, "recover") || !strings.Contains(stdout, "resume") {
		t.Errorf("help:\n%s", stdout)
	}
}
