package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

// TestRepliesArePrintedByLines: lines as they become whole or too long, what is left when the agent goes on, and where a piece is missing.
func TestRepliesArePrintedByLines(t *testing.T) {
	t.Parallel()
	piece := func(key string, received int, text string) graph.Progress {
		return graph.Progress{ExecutionID: "r", NodeID: "n", Kind: graph.ExecutorAlive, Detail: map[string]any{"agent": "clerk", "key": key, "activity": "model", "received_chars": received, "text": text}}
	}
	quiet := func(key string) graph.Progress {
		return graph.Progress{ExecutionID: "r", NodeID: "n", Kind: graph.ExecutorAlive, Detail: map[string]any{"agent": "clerk", "key": key, "activity": "tool"}}
	}
	for name, c := range map[string]struct {
		pieces []graph.Progress
		want   []string // while it arrives
		ended  []string // what is left at the end
	}{
		"a line at a time":      {[]graph.Progress{piece("t1", 5, "Hello"), piece("t1", 14, " you.\nHow"), piece("t1", 17, "...")}, []string{"Hello you."}, []string{"How..."}},
		"long lines":            {[]graph.Progress{piece("t1", 41, strings.Repeat("word ", 8)+"x")}, []string{"word word word word word word word"}, []string{"word x"}},
		"the agent goes on":     {[]graph.Progress{piece("t1", 3, "One"), quiet("t1.c1"), piece("t2", 3, "Two")}, []string{"One"}, []string{"Two"}},
		"the next turn":         {[]graph.Progress{piece("t1", 3, "One"), piece("t2", 3, "Two")}, []string{"One"}, []string{"Two"}},
		"a sub-agent meanwhile": {[]graph.Progress{piece("t1.c1/t1", 3, "One"), quiet("t1.c2"), piece("t1.c1/t1", 6, "Two")}, nil, []string{"OneTwo"}},
		"a lost piece":          {[]graph.Progress{piece("t1", 3, "One"), piece("t1", 9, "Two")}, nil, []string{"One… Two"}},
		"the node ends":         {[]graph.Progress{piece("t1", 3, "One"), {ExecutionID: "r", NodeID: "n", Kind: graph.NodeDone}}, []string{"One"}, nil},
		"no text":               {[]graph.Progress{quiet("t1"), {ExecutionID: "r", NodeID: "n", Kind: graph.NodeRuns}}, nil, nil},
	} {
		var out bytes.Buffer
		v := &replyPrinter{out: &out, clean: strings.TrimSpace, columns: func() int { return 44 }}
		check := func(when string, want []string) {
			var lines []string
			for line := range strings.Lines(out.String()) {
				lines = append(lines, strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "clerk │ "))
			}
			if strings.Join(lines, "|") != strings.Join(want, "|") {
				t.Errorf("%s, %s: %q, want %q", name, when, lines, want)
			}
			out.Reset()
		}
		for _, p := range c.pieces {
			v.progress(p)
		}
		check("meanwhile", c.want)
		v.end()
		check("at the end", c.ended)
	}
}

// TestAgentRunPrintsTextAsItArrives: on a terminal, unless --no-stream is set; elsewhere never. A secret in it is masked.
func TestAgentRunPrintsTextAsItArrives(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		terminal bool
		flags    []string
		prints   bool
	}{
		"on a terminal": {true, nil, true}, "with --no-stream": {true, []string{"--no-stream"}, false}, "elsewhere": {false, nil, false},
	} {
		server := chattest.Serve(t, chattest.Reply{Text: "First line.\nThen " + agentKey + ".\nDone.", Delay: 300 * time.Millisecond}) // the command listens by then
		folder := t.TempDir()
		list := `{"models":{"m":{"model":"x","endpoint":{"baseUrl":"` + server.URL + `","apiKeyEnv":"AGENT_KEY"}}},"agents":{"clerk":{"instructions":"Work.","stream":true}}}`
		if err := os.WriteFile(filepath.Join(folder, "agents.json"), []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, now: time.Now, env: config.Environment{
			GOOS: runtime.GOOS, Home: folder, Directory: folder, ReadFile: os.ReadFile,
			Variables: []string{"WORKFLOW_ENGINE_AGENTS=agents.json", "AGENT_KEY=" + agentKey},
		}}
		if c.terminal {
			a.terminal = func() int { return 80 }
		}
		args := append([]string{"agent", "run", "clerk", "Work.", "--db", filepath.Join(folder, "runs.db")}, c.flags...)
		if status := a.execute(context.Background(), args); status != exitOK {
			t.Fatalf("%s: status %d, %s", name, status, stderr.String())
		}
		if prints := strings.Contains(stderr.String(), "clerk │ Done."); prints != c.prints || strings.Contains(stderr.String(), agentKey) {
			t.Errorf("%s:\n%s", name, stderr.String())
		}
	}
}
