package timeline_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/runfile"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// entry is a record of one of the runs of a file.
type entry struct {
	run string
	rec history.Record
}

// recorded is an exported run with its subworkflows.
type recorded struct {
	id       string
	entries  []entry // in the order of their times
	programs map[string]*definition.Program
}

func read(t *testing.T, name string) recorded {
	t.Helper()
	in, err := os.Open(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	file, err := runfile.Read(in)
	if err != nil {
		t.Fatal(err)
	}
	byHash := map[string]*definition.Program{}
	for _, d := range file.Definitions {
		document, err := definition.Parse(d.Text)
		if err != nil {
			t.Fatal(err)
		}
		byHash[d.Hash], _ = definition.Compile(document, definition.Options{})
	}
	r := recorded{id: file.ExecutionID, programs: map[string]*definition.Program{}}
	for _, run := range file.Runs {
		for _, rec := range run.Records {
			r.entries = append(r.entries, entry{run.ExecutionID, rec})
		}
		r.programs[run.ExecutionID] = byHash[run.Records[0].Payload.DefinitionHash]
	}
	slices.SortStableFunc(r.entries, func(a, b entry) int { return a.rec.CreatedAt.Compare(b.rec.CreatedAt) })
	return r
}

// at is the tree as of a time after the beginning.
func (r recorded) at(after time.Duration) (*timeline.Tree, time.Time) {
	tree := timeline.NewTree(r.id, oneLine)
	now := r.entries[0].rec.CreatedAt.Add(after)
	for _, e := range r.entries {
		if e.rec.CreatedAt.After(now) {
			continue
		}
		if tree.NeedsProgram(e.run) {
			tree.Define(e.run, r.programs[e.run])
		}
		tree.Record(e.run, &e.rec)
	}
	return tree, now
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func show(lines []timeline.Line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Text() + "\n")
	}
	return b.String()
}

// TestFrames shows recorded runs over time on a wide, low terminal: every column is there, and long runs are folded.
func TestFrames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		times []time.Duration
	}{
		{"trip", []time.Duration{0, 500, 1100, 2500, 4200, 7100, 8500, 10_500, 12_200, 60_000}},
		{"loop", []time.Duration{2000, 60_000}},
		{"troubled", []time.Duration{8500, 10_500, 60_000}},
		{"agent", []time.Duration{500, 1500, 2500, 4500, 5500, 8500, 9500, 10_500, 12_500, 14_500, 18_500, 60_000}},
		{"journal", []time.Duration{2500, 4500, 5500, 6500, 8500, 9500, 60_000}},
	} {
		var r recorded
		switch c.name {
		case "troubled":
			r = troubled(t)
		case "journal":
			r = journaled(t)
		default:
			r = read(t, c.name)
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			for _, ms := range c.times {
				tree, now := r.at(ms * time.Millisecond)
				fmt.Fprintf(&b, "== after %v\n%s", ms*time.Millisecond, show(tree.Lines(now, 120, 16)))
			}
			path := filepath.Join("testdata", c.name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || string(want) != b.String() {
				t.Errorf("%s differs (%v; go test ./internal/timeline -update rewrites it)\n%s", path, err, b.String())
			}
		})
	}
}

// troubled is a run with errors too long for a line: in a branch, before another attempt, and at its end.
func troubled(t *testing.T) recorded {
	t.Helper()
	document, err := definition.Parse([]byte(`{"document":{"schema":"s","name":"trip","version":"1"},"state_schema":{"type":"object"},"nodes":[
		{"id":"begin","type":"start"},
		{"id":"gather","type":"parallel","config":{"join":"any","branches":[{"name":"web","entry":"search"},{"name":"papers","entry":"read"}]}},
		{"id":"search","type":"step","config":{"handler":"h"}},
		{"id":"read","type":"tool_call","retry":{"max_attempts":2},"config":{"server":"s","tool":"t","arguments":{}}},
		{"id":"finish","type":"end"}],"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"gather"},
		{"source":"gather","target":"finish"},{"source":"search","target":"finish"},{"source":"read","target":"finish"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	program, problems := definition.Compile(document, definition.Options{})
	if program == nil {
		t.Fatal(problems)
	}
	span := func(branch, entry string) *history.ParallelSpan {
		return &history.ParallelSpan{ParallelNodeID: "gather", JoinTargetID: "finish", BranchName: branch, BranchEntryNodeID: entry}
	}
	long := "no answer from https://library.example.org/v2/papers?topic=tides&limit=100 within 30s; the service says: " +
		strings.Repeat("the index is being rebuilt and answers again later; ", 5)
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	return everySecond("t1", program, began, []history.Record{
		{Name: history.ExecutionStarted, Payload: history.Payload{WorkflowName: "trip", WorkflowVersion: "1"}},
		{Name: history.NodeScheduled, Payload: history.Payload{NodeID: "gather", Visit: 1}},
		{Name: history.ParallelForked, Payload: history.Payload{NodeID: "gather", BranchNames: []string{"web", "papers"}}},
		{Name: history.NodeScheduled, Payload: history.Payload{NodeID: "search", Visit: 1, Span: span("web", "search")}},
		{Name: history.ActivityRequested, Payload: history.Payload{NodeID: "search", Visit: 1, Attempt: 1, Span: span("web", "search")}},
		{Name: history.NodeScheduled, Payload: history.Payload{NodeID: "read", Visit: 1, Span: span("papers", "read")}},
		{Name: history.ActivityRequested, Payload: history.Payload{NodeID: "read", Visit: 1, Attempt: 1, Span: span("papers", "read")}},
		{Name: history.ActivityFailed, Payload: history.Payload{
			NodeID: "read", Visit: 1, Attempt: 1, Span: span("papers", "read"), Code: "UPSTREAM_DOWN", Error: long, WillRetry: true, RetryAt: began.Add(20 * time.Second),
		}},
		{Name: history.ActivityFailed, Payload: history.Payload{NodeID: "search", Visit: 1, Attempt: 1, Span: span("web", "search"), Code: "NO_ROUTE", Error: "the host is not known here"}},
		{Kind: history.Command, Name: history.FailNode, Payload: history.Payload{NodeID: "search", Visit: 1, Reason: "activity_failed", Message: "the host is not known here"}},
		{Name: history.ActivityRequested, Payload: history.Payload{NodeID: "read", Visit: 1, Attempt: 2, Span: span("papers", "read")}},
		{Name: history.ActivityFailed, Payload: history.Payload{NodeID: "read", Visit: 1, Attempt: 2, Span: span("papers", "read"), Code: "UPSTREAM_DOWN", Error: long}},
		{Kind: history.Command, Name: history.FailNode, Payload: history.Payload{NodeID: "read", Visit: 1, Reason: "activity_failed", Message: long}},
		{Kind: history.Command, Name: history.FailNode, Payload: history.Payload{NodeID: "gather", Visit: 1, Reason: "branches_failed", Message: long}},
		{Name: history.ExecutionFailed, Payload: history.Payload{Error: long, Code: "UPSTREAM_DOWN", FailedNodeID: "gather"}},
	})
}

// everySecond are events and commands of a run, one a second.
func everySecond(id string, program *definition.Program, began time.Time, records []history.Record) recorded {
	r := recorded{id: id, programs: map[string]*definition.Program{id: program}}
	for i, rec := range records {
		if rec.Kind == "" {
			rec.Kind = history.Event
		}
		rec.Seq, rec.CreatedAt = int64(i+1), began.Add(time.Duration(i)*time.Second)
		r.entries = append(r.entries, entry{id, rec})
	}
	return r
}

// journaled is a run whose attempt records steps, asks, and rests.
func journaled(t *testing.T) recorded {
	t.Helper()
	document, err := definition.Parse([]byte(`{"document":{"schema":"s","name":"trip","version":"1"},"state_schema":{"type":"object"},"nodes":[
		{"id":"begin","type":"start"},{"id":"crawl","type":"step","config":{"handler":"h"}},{"id":"finish","type":"end"}],
		"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"crawl"},{"source":"crawl","target":"finish"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	program, problems := definition.Compile(document, definition.Options{})
	if program == nil {
		t.Fatal(problems)
	}
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	step := func(n float64, key, kind string) history.Payload {
		return history.Payload{NodeID: "crawl", Visit: 1, Attempt: 1, AgentStep: map[string]any{"key": key, "kind": kind, "n": n}}
	}
	asked, answered, rest := step(3, "q1", "question"), step(4, "q1", "answer"), step(6, "r1", "rest")
	asked.Prompt, answered.SignalPayload, rest.DueAt = "Is this the right site?", map[string]any{"ok": true}, began.Add(2*time.Hour)
	return everySecond("t1", program, began, []history.Record{
		{Name: history.ExecutionStarted, Payload: history.Payload{WorkflowName: "trip", WorkflowVersion: "1"}},
		{Name: history.NodeScheduled, Payload: history.Payload{NodeID: "crawl", Visit: 1}},
		{Name: history.ActivityRequested, Payload: history.Payload{NodeID: "crawl", Visit: 1, Attempt: 1}},
		{Name: history.ActivityRequested, Payload: step(1, "https://example.org/a/page/with/a/long/path/that/goes/on", "fetched")},
		{Name: history.ActivityRequested, Payload: step(2, "/2", "fetched")},
		{Name: history.InterruptRaised, Payload: asked},
		{Name: history.InterruptResumed, Payload: answered},
		{Name: history.ActivityRequested, Payload: step(5, "w5", "woken")},
		{Name: history.ActivityRequested, Payload: rest},
		{Name: history.ActivityRequested, Payload: step(7, "w7", "woken")},
		{Name: history.ActivityCompleted, Payload: history.Payload{NodeID: "crawl", Visit: 1, Attempt: 1, Result: history.Some(map[string]any{"bytes": 42.0})}},
		{Kind: history.Command, Name: history.CompleteNode, Payload: history.Payload{NodeID: "crawl"}},
		{Name: history.ExecutionCompleted},
	})
}

// TestFramesFit: at every record and in every width from 20 to 200, the lines stay within the terminal, name the run first and its totals last.
func TestFramesFit(t *testing.T) {
	t.Parallel()
	for _, r := range []recorded{read(t, "trip"), read(t, "agent"), troubled(t), journaled(t)} {
		framesFit(t, r, cmp.Or(map[string]string{"a1": "agent clerk"}[r.id], "trip"))
	}
}

// framesFit checks the frames of a run whose name begins so.
func framesFit(t *testing.T, r recorded, name string) {
	t.Helper()
	for _, e := range r.entries {
		tree, now := r.at(e.rec.CreatedAt.Sub(r.entries[0].rec.CreatedAt))
		for width := 20; width <= 200; width++ {
			height := 4 + width%57 // any: low and high terminals in turn
			lines := tree.Lines(now, width, height)
			if len(lines) > height || len(lines) < 2 {
				t.Fatalf("record %d of %s: %d lines of %d", e.rec.Seq, e.run, len(lines), height)
			}
			for _, l := range lines {
				if n := utf8.RuneCountInString(l.Text()); n > width {
					t.Fatalf("record %d of %s: a line of %d characters, not %d: %q", e.rec.Seq, e.run, n, width, l.Text())
				}
			}
			if !strings.HasPrefix(lines[0].Text(), name) || !strings.Contains(lines[len(lines)-1].Text(), " done") && width >= 40 {
				t.Fatalf("record %d of %s, width %d:\n%s", e.rec.Seq, e.run, width, show(lines))
			}
		}
	}
}

// TestNarrowTerminals: the types of nodes and their outputs are shown from 80 columns on.
func TestNarrowTerminals(t *testing.T) {
	t.Parallel()
	tree, now := read(t, "trip").at(time.Minute)
	for width := 20; width <= 200; width++ {
		text := show(tree.Lines(now, width, 60))
		if strings.Contains(text, "set_state") != (width >= 80) || strings.Contains(text, `{"ok":true}`) != (width >= 80) {
			t.Errorf("width %d:\n%s", width, text)
		}
	}
}

// TestTook: a visit in a loop took its own time, not that since the first.
func TestTook(t *testing.T) {
	t.Parallel()
	r := read(t, "loop")
	tree := timeline.NewTree(r.id, oneLine)
	tree.Define(r.id, r.programs[r.id])
	longest, visits := time.Duration(0), 0
	for _, e := range r.entries {
		if v := tree.Record(e.run, &e.rec).Visit; v != nil && e.rec.Name == history.CompleteNode && v.Node == "work" {
			visits++
			longest = max(longest, v.Took(e.rec.CreatedAt))
			if v.Number != visits {
				t.Errorf("visit %d is number %d", visits, v.Number)
			}
		}
	}
	if visits != 9 || longest > time.Second {
		t.Errorf("%d visits of %v at most", visits, longest)
	}
}

// TestWithoutDefinition: what is not known is not shown, and nothing else is lost.
func TestWithoutDefinition(t *testing.T) {
	t.Parallel()
	r := read(t, "trip")
	for id := range r.programs {
		r.programs[id] = nil
	}
	tree, now := r.at(time.Minute)
	text := show(tree.Lines(now, 120, 60))
	for _, want := range []string{"✓ gather", "20 items", "✓ ask", "completed"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// FuzzRecord: records in any order and with any names lead to lines that fit.
// TestCancelledWork: what a cancel cuts off is not shown as done, though a rollback follows.
func TestCancelledWork(t *testing.T) {
	t.Parallel()
	tree, at := timeline.NewTree("r", oneLine), time.Unix(0, 0)
	for _, rec := range []history.Record{
		{Name: history.ExecutionStarted, Payload: history.Payload{WorkflowName: "trip"}},
		{Name: history.NodeScheduled, Payload: history.Payload{NodeID: "pay"}},
		{Name: history.ActivityRequested, Payload: history.Payload{NodeID: "pay", Attempt: 1}},
		{Kind: history.Command, Name: history.CancelExecution, Payload: history.Payload{NodeID: "pay"}},
		{Name: history.RollbackStarted, Payload: history.Payload{NodeID: "pay"}},
		{Name: history.NodeScheduled, Payload: history.Payload{NodeID: "cancel", Compensates: "book#1"}},
	} {
		at = at.Add(time.Second)
		rec.CreatedAt = at
		if rec.Kind == "" {
			rec.Kind = history.Event
		}
		tree.Record("r", &rec)
	}
	if shown := show(tree.Lines(at, 80, 20)); !strings.Contains(shown, "- pay") || strings.Contains(shown, "✓ pay") || strings.Contains(shown, "1 done") {
		t.Errorf("%s", shown)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte{0, 14, 20, 31, 3}, uint8(80), uint8(24))
	nodes := []string{"", "begin", "gather", "search_web", "nap", "each", "ship", "ask"}
	names := history.Names()
	f.Fuzz(func(t *testing.T, picks []byte, width, height uint8) {
		tree := timeline.NewTree("r", oneLine)
		at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		for i := 0; i+1 < min(len(picks), 500); i += 2 {
			name := names[int(picks[i])%len(names)]
			node := nodes[int(picks[i+1])%len(nodes)]
			rec := history.Record{Seq: int64(i + 1), Kind: name.Kind(), Name: name, CreatedAt: at.Add(time.Duration(i) * time.Second), Payload: history.Payload{
				NodeID: node, Visit: int(picks[i+1]) / len(nodes), BranchNames: []string{"a", "b"}, BranchName: "a", Items: history.Some(float64(picks[i])),
				ChildExecutionID: cmp.Or(node, "r"), CaughtBy: node, Target: node,
				Span: &history.ParallelSpan{ParallelNodeID: nodes[int(picks[i])%len(nodes)], BranchName: "b"},
			}}
			tree.Record([]string{"r", node}[int(picks[i])%2], &rec)
		}
		w, h := int(width)+1, int(height)+1
		lines := tree.Lines(at.Add(time.Hour), w, h)
		if len(lines) > h {
			t.Fatalf("%d lines of %d", len(lines), h)
		}
		for _, l := range lines {
			if n := utf8.RuneCountInString(l.Text()); n > w {
				t.Fatalf("%d characters of %d", n, w)
			}
		}
	})
}
