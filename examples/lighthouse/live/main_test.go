package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// programVariable makes the test binary the program.
const programVariable = "LIGHTHOUSE_LIVE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" || len(os.Args) == 2 && os.Args[1] == helpdeskArgument {
		main()
		return
	}
	os.Exit(m.Run())
}

// live runs the program in a process of its own, with a database in folder.
func live(t *testing.T, folder string, variables []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, append([]string{"-db", filepath.Join(folder, "runs.db")}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "OPENAI_") || strings.HasPrefix(v, "WORKFLOW_ENGINE_")
	})
	cmd.Env = append(cmd.Env, append(variables, programVariable+"=1", "TMPDIR="+folder)...)
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), out.String(), errs.String()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, out.String(), errs.String()
}

func wants(t *testing.T, what, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile("(?m)" + p).MatchString(text) {
			t.Errorf("%s does not match %s:\n%s", what, p, text)
		}
	}
}

func TestLive(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name           string
		args           []string
		status         int
		stdout, stderr []string
	}{
		{"billing", nil, 0, []string{
			`^  "ticket_id": "SUP-4211"$`, `ExecutionCompleted`,
			`^classify +llm_call +1 +small-and-fast-local +\d+(ms|\.\ds|s) +\d\d+ +\d\d+ +completed$`,
			`^open_ticket +tool_call +1 +helpdesk/create_ticket +\d+(ms|\.\ds|s) +- +- +completed$`,
			`^2 attempts, .* from request to outcome, \d+ tokens in, \d+ out$`,
		}, []string{
			`^models  scripted .*chat completions at http://127\.0\.0\.1:\d+/v1`, `^\$ workflows-engine run `, `^✓ classify +llm_call .*\d+\+\d+ tokens`,
			`^✓ open_ticket +tool_call `, `^completed run live-`, `^\$ workflows-engine history live-`,
		}},
		{"technical", []string{"-ticket", "It crashes with error 17"}, 0, []string{`"Error codes of the desktop client"`, `^search_articles +tool_call +1 +helpdesk/search_articles`}, nil},
		{"a person is asked", []string{"-ticket", "Hello?", "-intent", "billing"}, 0, []string{`"decided_in": "ask_person"`, `SUP-4211`}, []string{`^\? ask_person`}},
		{"nobody answers", []string{"-ticket", "Hello?"}, 3, []string{`^classify +llm_call +1 `}, []string{`^paused run live-`, `-intent billing`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			status, stdout, stderr := live(t, folder, nil, tt.args...)
			if status != tt.status {
				t.Errorf("exit status %d, want %d", status, tt.status)
			}
			wants(t, "standard output", stdout, tt.stdout...)
			wants(t, "standard error", stderr, tt.stderr...)
		})
	}
}

// TestOwnEndpoint: the user's endpoint, model and key are used, and the key stands nowhere.
func TestOwnEndpoint(t *testing.T) {
	t.Parallel()
	const key = "sk-sentinel-5d41402abc4b2a76"
	asked := make(chan string, 1)
	server := chatCompletions(key)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		var request struct{ Model string }
		if _, err := body.ReadFrom(r.Body); err != nil || json.Unmarshal(body.Bytes(), &request) != nil {
			t.Errorf("request %q: %v", body.String(), err)
		}
		asked <- request.Model
		r.Body = io.NopCloser(&body)
		server.ServeHTTP(w, r)
	}))
	defer endpoint.Close()
	folder := t.TempDir()
	status, stdout, stderr := live(t, folder, []string{
		"OPENAI_BASE_URL=" + endpoint.URL + "/v1", "OPENAI_API_KEY=" + key, "OPENAI_MODEL=my/model",
	})
	if status != 0 {
		t.Fatalf("exit status %d\n%s", status, stderr)
	}
	if model := <-asked; model != "my/model" {
		t.Errorf("asked for %q", model)
	}
	wants(t, "standard output", stdout, `^classify +llm_call +1 +my/model-local`)
	everything := map[string]string{"standard output": stdout, "standard error": stderr}
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		everything[d.Name()] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, kept := everything["runs.db"]; !kept || len(everything) < 5 {
		t.Errorf("only %d texts searched", len(everything))
	}
	for where, text := range everything {
		if strings.Contains(text, "sentinel") {
			t.Errorf("the key is in %s", where)
		}
	}
}

// TestRefusedKey: a run that fails has a history too.
func TestRefusedKey(t *testing.T) {
	t.Parallel()
	endpoint := httptest.NewServer(chatCompletions("another key"))
	defer endpoint.Close()
	status, stdout, stderr := live(t, t.TempDir(), []string{"OPENAI_BASE_URL=" + endpoint.URL + "/v1", "OPENAI_API_KEY=sk-wrong"})
	if status != 1 {
		t.Errorf("exit status %d", status)
	}
	wants(t, "standard error", stderr, `^failed LLM_PROVIDER_ERROR run live-.*the key is refused`)
	wants(t, "standard output", stdout, `^classify +llm_call +1 +gpt-4.1-mini .*failed: LLM_PROVIDER_ERROR`)
}

// TestThePageShowsAHistory: the table that examples/README.md shows is what the program prints, but for the times.
func TestThePageShowsAHistory(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)\n```text\n(.*?)```\n").FindAllSubmatch(page, -1)
	if len(shown) != 1 {
		t.Fatalf("%d tables", len(shown))
	}
	plain := func(text string) string {
		text = regexp.MustCompile(`\d+(ms|\.\ds|s)\b`).ReplaceAllString(text, "1s")
		return regexp.MustCompile(` +`).ReplaceAllString(text, " ")
	}
	status, stdout, stderr := live(t, t.TempDir(), nil)
	if status != 0 || !strings.Contains(plain(stdout), plain(string(shown[0][1]))) {
		t.Errorf("status %d\n%s%s\nthe page shows\n%s", status, stderr, stdout, shown[0][1])
	}
}
