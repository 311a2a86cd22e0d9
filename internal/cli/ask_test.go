package cli

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/config"
)

// interact runs a command as if a person sat at the terminal and typed the lines.
func interact(t *testing.T, stdin io.Reader, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	return interactIn(t, t.TempDir(), stdin, args...)
}

func interactIn(t *testing.T, folder string, stdin io.Reader, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	a, out, errs := newTestApp(t, stdin, time.Now())
	a.now = time.Now
	a.env = config.Environment{Directory: folder, GOOS: "linux", Home: folder}
	a.interactive = true
	exit = a.execute(t.Context(), append(args, "--profile", "demo"))
	return exit, out.String(), errs.String()
}

// definitionOf is the path of an example.
func definitionOf(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "examples", name, name+".workflow.json"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAskUntilTheAnswerDoes: after an invalid answer the error is shown with the forms of an answer, and the question is not repeated.
func TestAskUntilTheAnswerDoes(t *testing.T) {
	t.Parallel()
	typed := strings.Join([]string{
		"nonsense",     // neither JSON nor key=value
		"comment=late", // lacks a required member: refused by the engine
		`approve=false comment="Say when it is."`, // accepted
		`{"approve": true}`,
	}, "\n") + "\n"
	exit, stdout, stderr := interact(t, strings.NewReader(typed),
		"run", definitionOf(t, "approval-loop"), "--input", `{"topic":"moving day"}`, "--store", "memory")
	if exit != exitOK || !strings.Contains(stdout, `"Say when it is."`) || !strings.Contains(stdout, `"revisions": 2`) {
		t.Errorf("exit %d, stdout %s, stderr %s", exit, stdout, stderr)
	}
	for _, want := range []string{
		"review asks: Please read the draft", "approve  boolean", `"nonsense" must be yes, no, JSON or key=value`,
		"error INVALID_RESUME_PAYLOAD:", "completed run",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("stderr lacks %q:\n%s", want, stderr)
		}
	}
	if n := strings.Count(stderr, "> "); n < 4 {
		t.Errorf("%d prompts, want 4:\n%s", n, stderr)
	}
	_, after, _ := strings.Cut(stderr, "> ")
	first, _, _ := strings.Cut(after, "review asks:")
	if n := strings.Count(stderr, "review asks:"); n != 2 || strings.Count(first, "> ") != 2 {
		t.Errorf("%d questions, want 2, and no question between invalid answers:\n%s", n, stderr)
	}
	if n := strings.Count(first, "  write yes or no, JSON or key=value"); n < 2 || strings.Contains(first, "hint:") || strings.Contains(first, "at: run") {
		t.Errorf("%d times the forms of an answer after an error, want 2 and no place or hint:\n%s", n, first)
	}
}

// TestPromptText: the lines of a question stay apart.
func TestPromptText(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]string{
		" Which  one?\n\n1. red\r\n\t2. blue\n": "Which one?\n    1. red\n    2. blue", "well?": "well?", "": "", "\n": "",
	} {
		if got := promptText(prompt); got != want {
			t.Errorf("%q: got %q, want %q", prompt, got, want)
		}
	}
}

func TestAskForASignal(t *testing.T) {
	t.Parallel()
	// In a bubble, the timer behind the signal passes at once.
	synctest.Test(t, func(t *testing.T) {
		exit, stdout, stderr := interact(t, strings.NewReader("approved_by=kim\n"),
			"run", definitionOf(t, "release-gate"), "--input", `{"service":"shop","version":"2"}`, "--store", "memory")
		if exit != exitOK || !strings.Contains(stdout, `"approved_by": "kim"`) {
			t.Errorf("exit %d, stdout %s, stderr %s", exit, stdout, stderr)
		}
	})
}

// Ctrl-D leaves the run waiting, with the command that goes on. That one asks again when it is given no payload.
func TestAskGivesUpAndGoesOn(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	exit, stdout, stderr := interactIn(t, folder, strings.NewReader(""),
		"run", definitionOf(t, "approval-loop"), "--input", `{"topic":"x"}`, "--id", "a1", "--db", "runs.db")
	if exit != exitPaused || stdout != "" || !strings.Contains(stderr, "workflows-engine resume a1 --payload") {
		t.Errorf("exit %d, stdout %s, stderr %s", exit, stdout, stderr)
	}
	exit, stdout, stderr = interactIn(t, folder, strings.NewReader("approve=true\n"), "resume", "a1", "--db", "runs.db")
	if exit != exitOK || !strings.Contains(stdout, `"published": true`) {
		t.Errorf("exit %d, stdout %s, stderr %s", exit, stdout, stderr)
	}
}

// Ctrl-C at the prompt ends the command and says how to go on.
func TestAskInterrupted(t *testing.T) {
	t.Parallel()
	reader, writer := io.Pipe()
	defer writer.Close()
	a, _, stderr := newTestApp(t, reader, time.Now())
	a.env = config.Environment{Directory: t.TempDir(), GOOS: "linux", Home: t.TempDir()}
	a.interactive = true
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	prompted := make(chan struct{})
	a.stderr = io.MultiWriter(stderr, &promptWatcher{seen: prompted})
	go func() {
		<-prompted
		cancel()
	}()
	got := a.execute(ctx, []string{
		"run", definitionOf(t, "approval-loop"), "--input", `{"topic":"x"}`, "--id", "a1", "--profile", "demo", "--db", "runs.db",
	})
	if got != exitInterrupted || !strings.Contains(stderr.String(), "workflows-engine resume a1 --payload") || !strings.Contains(stderr.String(), "workflows-engine watch a1") {
		t.Errorf("exit %d, stderr %s", got, stderr)
	}
}

// promptWatcher closes seen when the prompt is written.
type promptWatcher struct {
	seen chan struct{}
	done bool
}

func (w *promptWatcher) Write(p []byte) (int, error) {
	if string(p) == "> " && !w.done {
		w.done = true
		close(w.seen)
	}
	return len(p), nil
}

// TestStandardInputAtATerminal: a command that reads standard input says so to a person, who would wait for it in vain, and not to a program.
func TestStandardInputAtATerminal(t *testing.T) {
	t.Parallel()
	for _, interactive := range []bool{true, false} {
		a, _, stderr := newTestApp(t, strings.NewReader("{}"), noon)
		a.interactive = interactive
		a.execute(t.Context(), []string{"validate"})
		if said := strings.Contains(stderr.String(), "reading standard input; end it with "); said != interactive {
			t.Errorf("interactive %t: %s", interactive, stderr)
		}
	}
}
