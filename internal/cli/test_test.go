package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/config"
)

// test --watch runs the tests again when a test file or a definition changes, also one that was broken, and ends with its context.
func TestTestsAreWatched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const definition = `{"document":{"schema":"s","name":"w","version":"1"},"state_schema":{"type":"object"},
		"nodes":[{"id":"a","type":"start"},{"id":"z","type":"end","config":{"output_mapping":"1"}}],
		"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"z"}]}`
	write("w.workflow.json", definition)
	write("w.test.yaml", "tests: [{name: one, expect: {result: 1}}]")
	synctest.Test(t, func(t *testing.T) {
		var out, errs lockedBuffer
		a := &app{stdin: strings.NewReader(""), stdout: io.Discard, human: &out, stderr: &errs, env: config.Environment{Directory: dir}}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- a.test(ctx, nil, testOptions{watch: true}) }()
		for _, step := range []struct{ file, text, want string }{
			{"", "", "ok    w.test.yaml: one\nok: 1 test passed\n"},
			{"w.workflow.json", strings.Replace(definition, `mapping":"1`, `mapping":"1 + 1`, 1), "\nFAIL  w.test.yaml:1: one\n  result: expected 1, got 2\n  the run went a → z\nFAIL: 1 of 1 test failed\n"},
			{"w.test.yaml", "tests: [{name: one, expect: {result: 2}}, {nam: two}]", "\nFAIL: 1 file invalid\n"},
			{"w.test.yaml", "tests: [{name: one, expect: {result: 2}}, {name: two}]", "\nok    w.test.yaml: one\nok    w.test.yaml: two\nok: 2 tests passed\n"},
		} {
			before := out.String()
			if step.file != "" {
				write(step.file, step.text)
			}
			time.Sleep(2 * watchInterval)
			synctest.Wait()
			if got := strings.TrimPrefix(out.String(), before); got != step.want {
				t.Errorf("%s: %q, want %q", step.file, got, step.want)
			}
		}
		if !strings.Contains(errs.String(), `w.test.yaml:1:49: error TEST_FILE_INVALID unknown field "nam"`) {
			t.Errorf("stderr: %s", errs.String())
		}
		stop()
		if err := <-ended; status(err) != exitInterrupted {
			t.Errorf("ended with %v", err)
		}
	})
}
