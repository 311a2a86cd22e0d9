package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func TestPlainWriter(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	text := palette{on: true}.bad("no") + " \x1b[2J" + markBegin + "5" + markEnd
	if n, err := (&plainWriter{out: &out}).Write([]byte(text)); n != len(text) || err != nil {
		t.Fatal(n, err)
	}
	if want := "\x1b[31mno\x1b[0m \\u001b[2J5"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestPlainWriterIsShared: the live view and the log write to standard error at the same time.
func TestPlainWriterIsShared(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := &plainWriter{out: &out}
	const line = "a line that belongs together\n"
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if _, err := io.WriteString(w, line); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if want := strings.Repeat(line, 8*50); out.String() != want {
		t.Errorf("%d bytes were written, want %d whole lines", out.Len(), 8*50)
	}
}

// TestFileNamesInFindings: a file's name begins no line of its own.
func TestFileNamesInFindings(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	writeFindings(&out, palette{}, checked{source: source{file: "a\nerror forged.json"}, findings: problem.Findings{{Code: problem.DefinitionSchema, Message: "m"}}})
	if text := out.String(); strings.Contains(text, "\nerror forged") || !strings.Contains(text, `a\u000aerror forged.json`) {
		t.Error(text)
	}
}

// TestJSONIsPlain: what a model or a tool has written is shown as JSON at terminals, too, which some controls beyond ASCII steer. The value stays
// the same.
func TestJSONIsPlain(t *testing.T) {
	t.Parallel()
	value := map[string]any{"te\u202ext": "done \x1b[2J\u009b2J\x7f\u202egnp.exe <é\n>"}
	for name, write := range map[string]func(io.Writer, any) error{"indented": writeJSON, "line": writeLine} {
		var out bytes.Buffer
		if err := write(&out, value); err != nil {
			t.Fatal(err)
		}
		text := strings.TrimSuffix(out.String(), "\n")
		if jsonvalue.Plain(text) != text || !strings.Contains(text, "<é") {
			t.Errorf("%s: %q", name, text)
		}
		var again map[string]any
		if err := json.Unmarshal(out.Bytes(), &again); err != nil || !maps.Equal(again, value) {
			t.Errorf("%s: %v, %v", name, again, err)
		}
	}
}
