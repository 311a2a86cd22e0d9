package cli

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/workflows-engine/workflows-engine/internal/config"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		program: func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			os.Exit(Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// TestScript runs the command scripts: one for each command, named for it. Each starts in an empty folder, with the
// example definitions in $EXAMPLES and a default database of its own, $RUNS.
//
// A line "exits N run …" runs a command in this process and wants status N. A line "exec workflows-engine run …" runs a
// process of its own, which takes its time, for what needs one: standard input, signals, work in the background. A line
// "until PATTERN status …" repeats a command in this process until its standard output matches.
func TestScript(t *testing.T) {
	t.Parallel()
	p := scriptParams(t)
	p.Dir = filepath.Join("testdata", "script")
	testscript.Run(t, p)
}

// scriptParams returns what all scripts share.
func scriptParams(t *testing.T) testscript.Params {
	t.Helper()
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
	if err != nil {
		t.Fatal(err)
	}
	return testscript.Params{
		UpdateScripts:       *update,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("EXAMPLES", examples)
			env.Setenv("HOME", env.WorkDir)
			for _, name := range []string{"XDG_DATA_HOME", "LOCALAPPDATA"} {
				env.Setenv(name, filepath.Join(env.WorkDir, "data"))
			}
			data := map[string]string{"windows": "data", "darwin": "Library/Application Support"}[runtime.GOOS]
			env.Setenv("RUNS", filepath.Join(env.WorkDir, cmp.Or(data, ".local/share"), "workflows-engine", "runs.db"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) == 0 {
					ts.Fatalf("usage: exits STATUS ARGUMENT…")
				}
				want, err := strconv.Atoi(args[0])
				ts.Check(err)
				if got := runHere(ts, ts.Stdout(), ts.Stderr(), args[1:]); got != want {
					ts.Fatalf("exit status %d, want %d", got, want)
				}
			},
			"until":     until,
			"older":     older,
			"unchanged": unchanged,
			"damage":    damage,
		},
	}
}

// until waits for what another process is about to do, which only looking again can tell.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN ARGUMENT…")
	}
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(10 * time.Millisecond) {
		var stdout bytes.Buffer
		if runHere(ts, &stdout, io.Discard, args[1:]) == exitOK && pattern.Match(stdout.Bytes()) {
			return
		}
	}
	ts.Fatalf("no output matched %s", pattern)
}

// scriptVariables are the variables that commands in this process see of a script's environment.
var scriptVariables = []string{
	"XDG_DATA_HOME", "LOCALAPPDATA", "PATH", "WORKFLOW_ENGINE_STEP_HANDLERS", "WORKFLOW_ENGINE_STEP_COMMANDS",
	"WORKFLOW_ENGINE_DEFINITION_SIGNING_MODE", "WORKFLOW_ENGINE_STOR", "WORKFLOW_ENGINE_LLM_CONFIG", "WORKFLOW_ENGINE_MCP_CONFIG", "WORKFLOW_ENGINE_AGENTS", "WORKFLOW_ENGINE_WORKFLOW_DIR",
	"WORKFLOW_ENGINE_RECORD_REQUESTS",
}

// runHere runs a command in this process and gives its exit status.
func runHere(ts *testscript.TestScript, stdout, stderr io.Writer, args []string) int {
	env := config.Environment{GOOS: runtime.GOOS, Home: ts.Getenv("HOME"), Directory: ts.MkAbs("."), ReadFile: os.ReadFile}
	for _, name := range scriptVariables {
		env.Variables = append(env.Variables, name+"="+ts.Getenv(name))
	}
	a := &app{stdin: strings.NewReader(""), stdout: stdout, stderr: stderr, env: env, now: time.Now}
	return a.execute(context.Background(), args)
}
