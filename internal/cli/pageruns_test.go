package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// begun is how a command names the run that it has begun, or goes on with.
var begun = regexp.MustCompile(`run [\w. -]*?([0-9a-f-]{36})`)

// given is a signal that a command gives to the run that it begins.
var given = regexp.MustCompile(` --signal '[^']*'`)

// TestCommandsOfTheExamples runs what the pages of the examples say, one block after the other: it completes, or waits. In a block with
// ID, that is the run of the block before; if it has ended, it is begun again without the signals that it was given. A block of JSON is
// what the commands before it write to standard output.
func TestCommandsOfTheExamples(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the commands of the pages are for a POSIX shell")
	}
	examples := enginetest.Must(filepath.Abs(filepath.Join("..", "..", "examples")))
	pages := enginetest.Must(filepath.Glob(filepath.Join(examples, "*", "README.md")))
	if len(pages) < 10 {
		t.Fatalf("%d pages", len(pages))
	}
	for _, page := range pages {
		t.Run(filepath.Base(filepath.Dir(page)), func(t *testing.T) {
			t.Parallel()
			folder, id, printed, before, status := t.TempDir(), "", "", "", 0
			if err := os.Symlink(examples, filepath.Join(folder, "examples")); err != nil {
				t.Fatal(err)
			}
			run := func(commands string) {
				before = commands
				command := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
				command.Dir = folder
				command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "PWD=" + folder}
				var notes strings.Builder
				command.Stderr = &notes
				out, err := command.Output()
				if status = command.ProcessState.ExitCode(); status != exitOK && status != exitPaused {
					t.Errorf("%s%v\n%s%s", commands, err, out, &notes)
				}
				printed = string(out)
				if m := begun.FindStringSubmatch(notes.String()); m != nil {
					id = m[1]
				}
			}
			for _, b := range block.FindAllStringSubmatch(string(enginetest.Must(os.ReadFile(page))), -1) {
				switch {
				case b[1] == "json":
					if !jsonvalue.Equal(decoded(t, printed), decoded(t, b[2])) {
						t.Errorf("the page shows\n%sprinted is\n%s", b[2], printed)
					}
				case b[1] != "sh":
					t.Errorf("a block of %s", b[1])
				case strings.Contains(b[2], " ID "):
					if status == exitOK {
						run(given.ReplaceAllString(before, ""))
					}
					run(strings.ReplaceAll(b[2], " ID ", " "+id+" "))
				default:
					run(b[2])
				}
			}
		})
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return v
}

// pageBlock is the only block of a page that has a tag and holds a text.
func pageBlock(t *testing.T, page, tag, holds string) string {
	t.Helper()
	text := string(enginetest.Must(os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(page)))))
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+tag+"\n(.*?)^```\n").FindAllStringSubmatch(text, -1) {
		if strings.Contains(m[1], holds) {
			found = append(found, m[1])
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d blocks of %s with %q", page, len(found), tag, holds)
	}
	return found[0]
}

// TestThePythonStep performs a step by the program that docs/executors.md shows, with the settings that it shows.
func TestThePythonStep(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("the program of docs/executors.md is not run, because there is no python3: ", err)
	}
	folder := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(folder, "steps"), 0o700),
		os.WriteFile(filepath.Join(folder, "steps", "total.py"), []byte(pageBlock(t, "docs/executors.md", "python", "")), 0o600),
		os.WriteFile(filepath.Join(folder, "steps.json"), []byte(pageBlock(t, "docs/executors.md", "json", "stepCommands")), 0o600)); err != nil {
		t.Fatal(err)
	}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags := config.Register(set)
	if err := set.Parse([]string{"--store", "memory"}); err != nil {
		t.Fatal(err)
	}
	c, err := flags.Load(config.Environment{
		GOOS: runtime.GOOS, Home: folder, Directory: folder, ReadFile: os.ReadFile,
		Variables: []string{"WORKFLOW_ENGINE_STEP_COMMANDS=" + filepath.Join(folder, "steps.json"), "PRICES_TOKEN=k", "PATH=" + os.Getenv("PATH")},
	})
	if err != nil {
		t.Fatal(err)
	}
	executors, err := c.Executors()
	if err != nil {
		t.Fatal(err)
	}
	executor := c.RunnerOptions(executors, nil).Activities
	for items, want := range map[string]string{
		`[{"price": 2}, {"price": 5}]`: `map[total:7]`,
		`[]`:                           `NO_ITEMS: there are no items`,
	} {
		result, err := executor.Execute(t.Context(), activities.Request{
			NodeID: "sum", NodeType: "step", Visit: 1, Attempt: 1, Config: map[string]any{"handler": "urn:example:total"},
			State: func() map[string]any { return map[string]any{"items": decoded(t, items)} }, Heartbeat: func(map[string]any) {},
		})
		got := fmt.Sprint(result.Output)
		if f, ok := errors.AsType[*activities.Failure](err); ok {
			got = f.Code + ": " + f.Message
			if f.Retryable != activities.RetryPointless {
				t.Errorf("%s: another attempt may follow", items)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", items, got, want)
		}
	}
}

// TestEntriesOfHosts: what docs/install.md tells to write by hand is what install prints.
func TestEntriesOfHosts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		holds string
		args  []string
	}{
		{"/go/bin/", []string{"--server", "/home/kim/go/bin/workflows-engine-mcp"}},
		{"WORKFLOW_ENGINE_LLM_CONFIG", []string{"--server", "workflows-engine-mcp",
			"--env", `WORKFLOW_ENGINE_LLM_CONFIG={"apiKeyEnv":"OPENAI_API_KEY"}`, "--env", "OPENAI_API_KEY=…", "--", "--db", "/home/kim/team/runs.db"}},
		{"http://", []string{"--url", "http://127.0.0.1:8770/mcp", "--token-env", "WORKFLOWS_TOKEN"}},
	}
	if text := enginetest.Must(os.ReadFile(filepath.Join("..", "..", "docs", "install.md"))); strings.Count(string(text), "```json entry\n") != len(tests) {
		t.Errorf("docs/install.md has other entries than these %d", len(tests))
	}
	program := filepath.Join(t.TempDir(), server)
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		a, stdout, stderr := newTestApp(t, nil, noon)
		named := test.args[1]
		if test.args[0] == "--server" {
			test.args[1] = program
		}
		if status := a.execute(t.Context(), append([]string{"install", "--host", "claude-code", "--print"}, test.args...)); status != exitOK {
			t.Errorf("%q: status %d: %s", test.args, status, stderr)
			continue
		}
		got := strings.NewReplacer("${WORKFLOWS_TOKEN}", "…", program, named).Replace(stdout.String())
		if want := pageBlock(t, "docs/install.md", "json entry", test.holds); !jsonvalue.Equal(decoded(t, got), decoded(t, want)) {
			t.Errorf("%q prints\n%s, the page shows\n%s", test.args, got, want)
		}
	}
}

// TestThePageShowsAFailedTest: what docs/testing-workflows.md shows of a test that fails is what the command test prints.
func TestThePageShowsAFailedTest(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "examples", "lighthouse")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, mistake := range map[string]string{"lighthouse.workflow.json": "", "lighthouse.test.yaml": "intent: technical, confidence: 0.94"} {
		text := string(enginetest.Must(os.ReadFile(filepath.Join("..", "..", "examples", "lighthouse", name))))
		if mistake != "" {
			text = strings.Replace(text, "intent: billing, confidence: 0.94", mistake, 1)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, stdout, stderr := newTestApp(t, nil, noon)
	a.env.Directory = filepath.Dir(filepath.Dir(folder))
	if status := a.execute(t.Context(), []string{"test", "examples/lighthouse"}); status != exitFailed {
		t.Errorf("status %d: %s", status, stderr)
	}
	if want := pageBlock(t, "docs/testing-workflows.md", "text", ""); !strings.Contains(stdout.String(), want) {
		t.Errorf("the page shows\n%sprinted is\n%s", want, stdout)
	}
}
