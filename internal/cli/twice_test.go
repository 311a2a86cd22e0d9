package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// threeGates asks the same of three people, one after the other.
const threeGates = `{"document":{"schema":"s","name":"gates","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"begin","type":"start"},
	{"id":"clerk","type":"interrupt","config":{"prompt":"Clerk?","resume_schema":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}}},
	{"id":"boss","type":"interrupt","config":{"prompt":"Boss?","resume_schema":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}}},
	{"id":"head","type":"interrupt","config":{"prompt":"Head?","resume_schema":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}}},
	{"id":"end","type":"end"}],
	"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"clerk"},{"source":"clerk","target":"boss"},{"source":"boss","target":"head"},{"source":"head","target":"end"}]}`

// TestACommandAnswersWhatWasAskedWhenItCame: an answer without the id of its question, of a command that is sent again after somebody else
// has answered, or that was under way when another command answered, answers no question that was asked later.
func TestACommandAnswersWhatWasAskedWhenItCame(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, path := filepath.Join(folder, "gates.workflow.json"), filepath.Join(folder, "runs.db")
	if err := os.WriteFile(file, []byte(threeGates), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(who string, stdin io.Reader, args ...string) (exit int, output string) {
		a, stdout, stderr := newTestApp(t, stdin, time.Now())
		a.now = time.Now
		exit = a.execute(graph.WithActor(context.Background(), history.Actor{Via: "command", Name: who}), append(args, "--db", path))
		return exit, stdout.String() + stderr.String()
	}
	store := enginetest.Must(historysql.Open(t.Context(), path, historysql.Options{}))
	defer store.Close()
	node := func(id string) string { return enginetest.Must(store.Execution(t.Context(), id)).CurrentNodeID }
	none := strings.NewReader("")

	command("ann", none, "run", file, "--id", "again")
	command("ann", none, "resume", "again", "--payload", `{"ok":true}`)
	command("bob", none, "resume", "again", "--payload", `{"ok":false}`)
	for range 2 {
		if _, output := command("ann", none, "resume", "again", "--payload", `{"ok":true}`); node("again") != "head" {
			t.Fatalf("the same command again answered what it had not seen:\n%s", output)
		}
	}
	if exit, output := command("ann", none, "resume", "again", "--payload", `{"ok":true}`, "--interrupt", "again:head#1"); exit != exitOK {
		t.Errorf("with the id: exit %d\n%s", exit, output)
	}

	command("ann", none, "run", file, "--id", "late")
	payload, typed := io.Pipe()
	type result struct {
		exit   int
		output string
	}
	late := make(chan result, 1)
	started := make(chan struct{})
	go func() {
		exit, output := command("bob", &startedReader{payload, started}, "resume", "late", "--payload", "-")
		late <- result{exit, output}
	}()
	<-started
	time.Sleep(5 * time.Millisecond) // records have milliseconds
	command("ann", none, "resume", "late", "--payload", `{"ok":true}`)
	_, _ = io.WriteString(typed, `{"ok":false}`)
	_ = typed.Close()
	got := <-late
	if got.exit == exitOK || node("late") != "boss" || !strings.Contains(got.output, "Recorded by ann (command)") {
		t.Errorf("open is %s; exit %d\n%s", node("late"), got.exit, got.output)
	}
	if _, output := command("bob", none, "resume", "late", "--payload", `{"ok":false}`); node("late") != "head" {
		t.Errorf("afterwards: open is %s\n%s", node("late"), output)
	}
}

// startedReader tells of the first read.
type startedReader struct {
	io.Reader
	started chan struct{}
}

func (r *startedReader) Read(p []byte) (int, error) {
	if r.started != nil {
		close(r.started)
		r.started = nil
	}
	return r.Reader.Read(p)
}

// TestOneAnswerThreeTimesAtOnce: commands that give one answer at once all end as the one whose answer is recorded, whether the question or the
// run is over when they come.
func TestOneAnswerThreeTimesAtOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, path := filepath.Join(folder, "gate.workflow.json"), filepath.Join(folder, "runs.db")
	const gate = `{"document":{"schema":"s","name":"gate","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"begin","type":"start"},
		{"id":"clerk","type":"interrupt","config":{"prompt":"Clerk?","resume_schema":{"type":"object"}}},{"id":"end","type":"end"}],
		"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"clerk"},{"source":"clerk","target":"end"}]}`
	if err := os.WriteFile(file, []byte(gate), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) (exit int, output string) {
		a, stdout, stderr := newTestApp(t, strings.NewReader(""), time.Now())
		a.now = time.Now
		exit = a.execute(context.Background(), append(args, "--db", path))
		return exit, stdout.String() + stderr.String()
	}
	for i := range 5 {
		id := fmt.Sprintf("r%d", i)
		if exit, output := command("run", file, "--id", id); exit != exitPaused {
			t.Fatalf("exit %d: %s", exit, output)
		}
		var all sync.WaitGroup
		start := make(chan struct{})
		for range 3 {
			all.Go(func() {
				<-start
				if exit, output := command("resume", id, "--payload", `{"ok":true}`); exit != exitOK {
					t.Errorf("%s: exit %d: %s", id, exit, output)
				}
			})
		}
		close(start)
		all.Wait()
		if exit, output := command("resume", id, "--payload", `{"ok":false}`); exit != exitFailed {
			t.Errorf("%s: another answer: exit %d: %s", id, exit, output)
		}
	}
}
