package mcpserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/stdio"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// TestAKnownDefinitionIsNotReadAgain counts what the process allocates: reading and compiling a definition of 300 nodes takes tens of thousands of
// objects, a call that repeats it a few more than a call that does not.
func TestAKnownDefinitionIsNotReadAgain(t *testing.T) { // not parallel: it counts what the process allocates
	if soak.UnderRace {
		t.Skip("the race detector allocates, too")
	}
	const many, few = 20_000, 5_000
	var nodes, edges strings.Builder
	for i := range 300 {
		fmt.Fprintf(&nodes, `,{"id":"n%d","type":"step","config":{"handler":"h","payload":{"text":%q}}}`, i, strings.Repeat("x", 100))
		fmt.Fprintf(&edges, `,{"source":"n%d","target":"n%d"}`, i, i+1)
	}
	long := `{"document":{"schema":"https://agent-workflow.dev/schemas/workflow-definition.json","name":"long","version":"1.0.0"},"state_schema":{"type":"object"},` +
		`"nodes":[{"id":"s","type":"start"}` + nodes.String() + `,{"id":"n300","type":"end"}],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"n0"}` + edges.String() + `]}`
	object, text := `"definition":`+long, fmt.Sprintf(`"definition":%q`, strings.Replace(long, `"long"`, `"text"`, 1))
	store := historymem.New()
	call, end := connected(t, store)
	start := func(id, definition string) string { return fmt.Sprintf(`"execution_id":%q,%s`, id, definition) }
	submit := func(id string, node int, more string) string {
		return fmt.Sprintf(`"execution_id":%q,"node_id":"n%d","outcome":{"ok":true,"result":{}}%s`, id, node, more)
	}
	for _, c := range []struct {
		what, tool, arguments string
		least, most           int
	}{
		{"the first start", "workflow_start", start("a", object), many, 1 << 30},
		{"the first start with text", "workflow_start", start("b", text), many, 1 << 30},
		{"another start", "workflow_start", start("c", object), 0, few},
		{"another start with text", "workflow_start", start("d", text), 0, few},
		{"a start by name", "workflow_start", start("e", `"definition_ref":"long"`), 0, few},
		{"a submit", "workflow_submit_activity", submit("a", 0, ""), 0, few},
		{"a submit that repeats it", "workflow_submit_activity", submit("a", 1, ","+object), 0, few},
		{"a submit that repeats it as text", "workflow_submit_activity", submit("b", 0, ","+text), 0, few},
		{"a status", "workflow_status", `"execution_id":"a"`, 0, few},
		{"a definition that is not known", "workflow_submit_activity", submit("c", 0, ","+strings.Replace(object, `"n299"`, ` "n299"`, 1)), many / 4, 1 << 30},
	} {
		if n := call(c.tool, c.arguments); n < c.least || n > c.most {
			t.Errorf("%s: %d objects, want %d to %d", c.what, n, c.least, c.most)
		}
	}
	end()
	call, end = connected(t, store) // another process: it reads the stored definition once, for all runs
	defer end()
	if n := call("workflow_submit_activity", submit("a", 2, "")); n < many {
		t.Errorf("the first call of a process: %d objects", n)
	}
	next := map[string]int{"c": 1, "e": 0}
	for _, id := range []string{"c", "e"} {
		if n := call("workflow_submit_activity", submit(id, next[id], "")); n > 2*few {
			t.Errorf("another run of the definition: %d objects", n)
		}
	}
}

// connected serves a client over a store. Its calls return how many objects the process has allocated for them.
func connected(t *testing.T, store history.Store) (call func(tool, arguments string) int, end func()) {
	t.Helper()
	engine := enginetest.Must(graph.New(store, graph.Options{DefaultMode: machine.HostMediated, WaitLimit: -1}))
	in, out := io.Pipe()
	answers, answered := io.Pipe()
	go mcpserver.Serve(context.Background(), mcpserver.New(engine, mcpserver.Options{}), &stdio.Transport{In: in, Out: answered})
	lines := bufio.NewReaderSize(answers, 1<<20)
	id := 0
	send := func(method, params string) string {
		id++
		if _, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	send("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"0"}}`)
	call = func(tool, arguments string) int {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		answer := send("tools/call", fmt.Sprintf(`{"name":%q,"arguments":{%s}}`, tool, arguments))
		runtime.ReadMemStats(&after)
		if strings.Contains(answer, `"isError":true`) || strings.Contains(answer, `"error":`) {
			t.Fatalf("%s: %.500s", tool, answer)
		}
		return int(after.Mallocs - before.Mallocs)
	}
	return call, func() { out.Close(); engine.Close() }
}

// TestADefinitionThatIsSentAgainIsReadAsSent: whether its text is known from an earlier call changes no answer.
func TestADefinitionThatIsSentAgainIsReadAsSent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	definition := func(name, more string) string {
		return fmt.Sprintf(`{"document":{"schema":"https://agent-workflow.dev/schemas/workflow-definition.json","name":%q,"version":"1.0.0","description":%q},"state_schema":{"type":"object"},`+
			`"nodes":[{"id":"s","type":"start"},{"id":"do","type":"step","config":{"handler":"h"}},{"id":"e","type":"end"}],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"do"},{"source":"do","target":"e"}]%s}`, name, long, more)
	}
	p := newAskedPeer(t)
	id := 0
	call := func(tool, arguments string) string {
		id++
		return p.send(rpc(id, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{%s}}`, tool, arguments))).text
	}
	start := func(run, definition string) string {
		return call("workflow_start", fmt.Sprintf(`"execution_id":%q,"activity_execution_mode":"host_mediated","definition":%s`, run, definition))
	}
	again := func(run, definition string) string {
		return call("workflow_submit_activity", fmt.Sprintf(`"execution_id":%q,"node_id":"do","outcome":{"ok":true,"result":{}},"definition":%s`, run, definition))
	}
	first, other := definition("one", ""), definition("two", "")
	for _, c := range []struct{ answer, want string }{
		{start("a", first), "awaiting_activity"},
		{start("b", first), "awaiting_activity"},
		{start("c", other), "awaiting_activity"},
		{again("a", other), "SUBMIT_VALIDATION_ERROR"},
		{again("a", first), "completed"},
		{again("b", strings.Replace(first, `"h"`, `"other"`, 1)), "SUBMIT_VALIDATION_ERROR"},
		{again("b", first+`,"definition":`+first), "definition"},
		{again("b", strings.Replace(first, `"nodes"`, `"nodes":[],"nodes"`, 1)), "nodes"},
		{again("b", " "+first+" "), "completed"},
		{start("d", definition("one", `,"edge":1`)), "VALIDATION_ERROR"},
		{start("d", definition("one", `,"edge":1`)), "VALIDATION_ERROR"},
	} {
		if !strings.Contains(c.answer, c.want) {
			t.Errorf("%q is not in %.600s", c.want, c.answer)
		}
	}
}
