//go:build unix

package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/config"
)

// silentInput is an input from which nothing comes. reading is closed when somebody waits for it.
type silentInput struct{ reading chan struct{} }

func (s silentInput) Read([]byte) (int, error) {
	close(s.reading)
	select {}
}

// TestASignalEndsWhatReads: a command that waits for standard input, or for the writer of a pipe that it was given, ends when it is
// interrupted, with the status for that.
func TestASignalEndsWhatReads(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "flow.workflow.yaml"), []byte(`document: {schema: s, name: flow, version: '1'}
state_schema: {type: object}
nodes: [{id: a, type: start}, {id: z, type: end}]
edges: [{source: __start__, target: a}, {source: a, target: z}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"import -", "verify --file -", "validate -", "validate", "run -", "fmt -", "graph -", "run flow.workflow.yaml --input -", "resume r --payload -",
		"signal r done --payload -", "submit r n --result -", "recover r --definition -", "fork r --before n --state -", "retry r --definition -",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			in := silentInput{make(chan struct{})}
			var errs bytes.Buffer
			a := &app{
				stdin: in, stdout: io.Discard, stderr: &errs, now: time.Now,
				env: config.Environment{GOOS: runtime.GOOS, Home: folder, Directory: folder, ReadFile: os.ReadFile},
			}
			status := make(chan int)
			go func() { status <- a.execute(ctx, strings.Fields(line)) }()
			select {
			case <-in.reading:
			case got := <-status:
				t.Fatalf("status %d before it has read: %s", got, errs.String())
			}
			interrupt()
			if got := <-status; got != exitInterrupted || errs.String() != "interrupted\n" {
				t.Errorf("status %d: %s", got, errs.String())
			}
		})
	}
	t.Run("a pipe without a writer", func(t *testing.T) {
		t.Parallel()
		pipe := filepath.Join(folder, "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"import pipe", "validate pipe", "run pipe", "run flow.workflow.yaml --input @pipe"} {
			ctx, interrupt := context.WithCancel(t.Context())
			a, _, errs := newTestApp(t, strings.NewReader(""), time.Now())
			a.env = config.Environment{GOOS: runtime.GOOS, Home: folder, Directory: folder, ReadFile: os.ReadFile}
			interrupt()
			if got := a.execute(ctx, strings.Fields(line)); got != exitInterrupted {
				t.Errorf("%s: status %d: %s", line, got, errs.String())
			}
		}
	})
}

// endless is an input without an end. It counts what was read.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += len(p)
	return len(p), nil
}

// TestAnInputWithoutEndIsRefused: every command that reads a text refuses it once it is longer than its limit, without reading on.
func TestAnInputWithoutEndIsRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "flow.workflow.yaml"), []byte(`document: {schema: s, name: flow, version: '1'}
state_schema: {type: object}
nodes: [{id: a, type: start}, {id: z, type: end}]
edges: [{source: __start__, target: a}, {source: a, target: z}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	const definition, value = 8 << 20, 16 << 20
	for _, tt := range []struct {
		line   string
		status int
		most   int
		says   string
	}{
		{"validate -", exitFailed, definition, "DEFINITION_TOO_LARGE the text has more than 8388608 bytes"},
		{"validate --format yaml -", exitFailed, definition, "DEFINITION_TOO_LARGE the text has more than 8388608 bytes"},
		{"run -", exitFailed, definition, "the text has more than 8388608 bytes"},
		{"fmt -", exitFailed, definition, "the text has more than 8388608 bytes"},
		{"graph -", exitFailed, definition, "the text has more than 8388608 bytes"},
		{"retry r --definition -", exitFailed, definition, "the text has more than 8388608 bytes"},
		{"run flow.workflow.yaml --input -", exitUsage, value, "cannot read standard input: more than 16777216 bytes"},
		{"resume r --payload -", exitUsage, value, "more than 16777216 bytes"},
		{"signal r done --payload -", exitUsage, value, "more than 16777216 bytes"},
		{"submit r n --result -", exitUsage, value, "more than 16777216 bytes"},
		{"fork r --before n --state -", exitUsage, value, "more than 16777216 bytes"},
		{"tool validate /dev/zero", exitFailed, 0, "the text has more than 1048576 bytes"},
		{"agent validate /dev/zero", exitFailed, 0, "the text has more than 1048576 bytes"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			t.Parallel()
			var in endless
			var errs bytes.Buffer
			a := &app{
				stdin: &in, stdout: io.Discard, stderr: &errs, now: time.Now,
				env: config.Environment{GOOS: runtime.GOOS, Home: folder, Directory: folder, ReadFile: os.ReadFile},
			}
			if status := a.execute(t.Context(), strings.Fields(tt.line)); status != tt.status || !strings.Contains(errs.String(), tt.says) {
				t.Errorf("status %d: %s", status, errs.String())
			}
			if in.read > tt.most+1<<20 {
				t.Errorf("%d bytes were read", in.read)
			}
		})
	}
}

// TestAPipeCanBeRead: what comes from a pipe that has a writer is read to its end.
func TestAPipeCanBeRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("{\"a\": 1}\n", 50_000)
	written := make(chan error)
	go func() { written <- os.WriteFile(pipe, []byte(text), 0o600) }()
	a, _, _ := newTestApp(t, strings.NewReader(""), time.Now())
	a.ctx, a.env.Directory = t.Context(), folder
	got, err := a.readAll("pipe")
	if err != nil || string(got) != text {
		t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
