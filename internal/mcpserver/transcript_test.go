package mcpserver_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/stdio"
)

var update = flag.Bool("update", false, "rewrite the expected halves of transcripts")

// TestTranscripts plays testdata/transcripts/*.txt: what a host writes and what the server must answer, byte for byte.
//
//	# a comment
//	> a line that the host sends; @name@ stands for testdata/definitions/name.json in compact form
//	< a line that the server answers, in the order of arrival
//
// Each file is one session over stdio with a memory store, in a bubble whose clock begins in 2000; executions without an id are
// named run-1, run-2, ….
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, string(text)) })
			if got == string(text) {
				return
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s differs (go test ./internal/mcpserver -update rewrites it):\n%s", file, firstDifference(string(text), got))
		})
	}
}

// play sends the host's lines of a script and returns the script with the server's actual lines.
func play(t *testing.T, script string) string {
	w := newWire(t)
	var got strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		if sent, ok := strings.CutPrefix(line, "> "); ok {
			got.WriteString(line + "\n")
			for _, answer := range w.send(expand(t, sent)) {
				got.WriteString("< " + answer + "\n")
			}
		} else if !strings.HasPrefix(line, "<") {
			got.WriteString(line + "\n")
		}
	}
	return got.String()
}

func expand(t *testing.T, line string) string {
	t.Helper()
	parts := strings.Split(line, "@")
	if len(parts) != 3 {
		return line
	}
	text, err := os.ReadFile(filepath.Join("testdata", "definitions", parts[1]+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return parts[0] + compact(t, text) + parts[2]
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range x {
		if i >= len(y) || x[i] != y[i] {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, x[i], y[min(i, len(y)-1)])
		}
	}
	return "more lines at the end"
}

// wire is a session over stdio, inside a synctest bubble.
type wire struct {
	in  *io.PipeWriter
	out *buffer
}

type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// take returns what has been written since the last take, as lines.
func (b *buffer) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := strings.TrimSuffix(b.buf.String(), "\n")
	b.buf.Reset()
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func newWire(t *testing.T) *wire {
	t.Helper()
	ids := 0
	store := enginetest.Closing(t, historymem.New())
	runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{
		DefaultMode: machine.HostMediated,
		NewID:       func() string { ids++; return fmt.Sprintf("run-%d", ids) },
	})))
	in, feed := io.Pipe()
	w := &wire{in: feed, out: new(buffer)}
	server := mcpserver.New(runner, mcpserver.Options{Version: "1.0.0", DefaultMode: machine.HostMediated, Definitions: store})
	served := make(chan error, 1)
	go func() {
		served <- mcpserver.Serve(context.Background(), server, &stdio.Transport{In: in, Out: w.out})
	}()
	t.Cleanup(func() {
		feed.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return w
}

// send writes a line and returns the answers once every goroutine is idle.
func (w *wire) send(line string) []string {
	io.WriteString(w.in, line+"\n")
	synctest.Wait()
	return w.out.take()
}
