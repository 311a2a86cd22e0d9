package mcpserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// The sizes of whole runs: what a host's model reads of them, in bytes of structured content. A token is some four bytes.
var contextRuns = []struct {
	name           string
	definition     map[string]any
	input          map[string]any
	whole, largest int // marks
}{
	{"10 activities, state of 50 kB", chainOf(10), object{"documents": documents(50_000)}, 60_000, 12_000},
	{"8 branches, state of 20 kB", branchesOf(8), object{"documents": documents(20_000)}, 60_000, 12_000},
	{"20 branches, state of 20 kB", branchesOf(20), object{"documents": documents(20_000)}, 60_000, 12_000},
}

// documents are texts of some bytes together.
func documents(bytes int) []any {
	list := make([]any, bytes/1000)
	for i := range list {
		list[i] = object{"title": fmt.Sprint("Document ", i), "text": strings.Repeat("lorem ipsum ", 80)}
	}
	return list
}

var promptOfNode = object{"model": "large", "prompt": "Summarise the documents of the state in three sentences, each of at most twenty words, and name what contradicts."}

func chainOf(n int) map[string]any {
	nodes := []any{object{"id": "start", "type": "start"}}
	edges := []any{object{"source": "__start__", "target": "start"}}
	last := "start"
	for i := range n {
		id := fmt.Sprint("step", i)
		nodes = append(nodes, object{"id": id, "type": "llm_call", "config": promptOfNode})
		edges = append(edges, object{"source": last, "target": id})
		last = id
	}
	nodes = append(nodes, object{"id": "end", "type": "end"})
	return object{"document": object{"schema": "https://agent-workflow.dev/schemas/workflow-definition.json", "name": "chain", "version": "1.0.0"}, "state_schema": object{"type": "object"}, "nodes": nodes, "edges": append(edges, object{"source": last, "target": "end"})}
}

func branchesOf(n int) map[string]any {
	nodes := []any{object{"id": "start", "type": "start"}, object{"id": "join", "type": "set_state", "config": object{"assignments": object{"joined": object{"literal": true}}}}, object{"id": "end", "type": "end"}}
	edges := []any{object{"source": "__start__", "target": "start"}, object{"source": "start", "target": "fan"}, object{"source": "fan", "target": "join"}, object{"source": "join", "target": "end"}}
	branches := []any{}
	for i := range n {
		id := fmt.Sprint("read", i)
		nodes = append(nodes, object{"id": id, "type": "llm_call", "config": promptOfNode})
		edges = append(edges, object{"source": id, "target": "join"})
		branches = append(branches, object{"name": fmt.Sprint("b", i), "entry": id})
	}
	nodes = append(nodes, object{"id": "fan", "type": "parallel", "config": object{"join": "all", "branches": branches}})
	return object{"document": object{"schema": "https://agent-workflow.dev/schemas/workflow-definition.json", "name": "fan", "version": "1.0.0"}, "state_schema": object{"type": "object"}, "nodes": nodes, "edges": edges}
}

// driveAsHost runs a definition as a host does that follows next, and returns the bytes of all answers and of the largest.
func driveAsHost(tb testing.TB, definition, input map[string]any, o mcpserver.Options) (whole, largest, answers int) {
	tb.Helper()
	store := enginetest.Closing(tb, historymem.New())
	runner := enginetest.Closing(tb, enginetest.Must(graph.New(store, graph.Options{})))
	o.Definitions, o.DefaultMode = store, machine.HostMediated
	session := connect(tb, mcpserver.New(runner, o))
	call := func(tool string, args map[string]any) map[string]any {
		res, err := session.CallTool(tb.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil || res.IsError {
			tb.Fatalf("%s: %v %v", tool, err, res)
		}
		text := jsonvalue.Canonical(res.StructuredContent)
		whole, largest, answers = whole+len(text), max(largest, len(text)), answers+1
		return res.StructuredContent.(map[string]any)
	}
	content := call("workflow_start", object{"definition": definition, "input": input})
	for content["status"] != "completed" {
		next := content["next"].(map[string]any)
		args := next["arguments"].(map[string]any)
		args["outcome"] = object{"ok": true, "result": object{"summary": strings.Repeat("A sentence of a summary. ", 8)}}
		content = call(next["tool"].(string), args)
	}
	return whole, largest, answers
}

// TestAnswersFitAContext: whole runs keep to their marks.
func TestAnswersFitAContext(t *testing.T) {
	t.Parallel()
	for _, c := range contextRuns {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			whole, largest, answers := driveAsHost(t, c.definition, c.input, mcpserver.Options{})
			t.Logf("%d answers, %d bytes, the largest %d", answers, whole, largest)
			if whole > c.whole || largest > c.largest {
				t.Errorf("%d bytes, the largest %d: more than %d and %d", whole, largest, c.whole, c.largest)
			}
		})
	}
}

// BenchmarkContext shows the bytes of whole runs, in the usual form and with full answers.
func BenchmarkContext(b *testing.B) {
	for _, c := range contextRuns {
		for _, form := range []struct {
			name  string
			bytes int
		}{{"bounded", 0}, {"full", mcpserver.FullAnswers}} {
			b.Run(c.name+"/"+form.name, func(b *testing.B) {
				var whole, largest int
				for b.Loop() {
					whole, largest, _ = driveAsHost(b, c.definition, c.input, mcpserver.Options{AnswerBytes: form.bytes})
				}
				b.ReportMetric(float64(whole), "bytes/run")
				b.ReportMetric(float64(largest), "bytes/largest")
			})
		}
	}
}

// connect connects a client to a server.
func connect(tb testing.TB, server *mcp.Server) *mcp.ClientSession {
	tb.Helper()
	here, there := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() { served <- mcpserver.Serve(tb.Context(), server, there) }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, nil).Connect(tb.Context(), here, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		session.Close()
		<-served
	})
	return session
}
