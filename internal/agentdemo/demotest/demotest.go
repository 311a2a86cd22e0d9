// Package demotest runs the programs of the examples with agents in tests: the test binary is the program.
package demotest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// programVariable makes the test binary the program.
const programVariable = "AGENT_DEMO_PROGRAM"

// Main is TestMain: the program where a test or the program itself has started it as that, otherwise the tests.
func Main(m *testing.M, program func()) {
	if os.Getenv(programVariable) != "" || len(os.Args) == 3 && os.Args[1] == "serve-tools" {
		program()
		return
	}
	os.Exit(m.Run())
}

// Live runs the program in a process of its own, without the user's settings.
func Live(t *testing.T, variables []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "OPENAI_") || strings.HasPrefix(v, "WORKFLOW_ENGINE_")
	})
	cmd.Env = append(append(cmd.Env, variables...), programVariable+"=1", "TMPDIR="+t.TempDir(), "GORACE=atexit_sleep_ms=0")
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Logf("%v; standard error:\n%s", exit, &errs) // seen if the test fails
		return exit.ExitCode(), out.String(), errs.String()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, out.String(), errs.String()
}

// Wants checks that a text matches patterns, in order.
func Wants(t *testing.T, what, text string, patterns ...string) {
	t.Helper()
	rest := text
	for _, p := range patterns {
		at := regexp.MustCompile("(?m)" + p).FindStringIndex(rest)
		if at == nil {
			t.Errorf("%s does not match %s in its turn:\n%s", what, p, text)
			return
		}
		rest = rest[at[1]:]
	}
}

// Parrot serves chat completions that always say the same, as an endpoint of the user's, and returns its address.
func Parrot(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop",`+
			`"message":{"role":"assistant","content":"{\"refunded\":0,\"answer\":\"Well.\"}"}}],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}
