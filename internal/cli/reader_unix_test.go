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
