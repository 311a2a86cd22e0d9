package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// line is a client that writes messages one by one, without waiting for answers.
type line struct {
	t    *testing.T
	conn mcp.Connection
	next int
}

func newLine(t *testing.T, engine graph.Engine) *line {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() {
		served <- mcpserver.Serve(context.Background(), mcpserver.New(engine, mcpserver.Options{}), there)
	}()
	conn, err := here.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := &line{t: t, conn: conn}
	t.Cleanup(func() {
		_ = conn.Close()
		if err := <-served; err != nil && !errors.Is(err, io.ErrClosedPipe) { // the client may leave while it is told something
			t.Errorf("Serve: %v", err)
		}
	})
	l.send("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`)
	l.answer()
	l.notify("notifications/initialized", `{}`)
	return l
}

func (l *line) send(method, params string) (id string) {
	l.t.Helper()
	l.next++
	id = fmt.Sprint("c", l.next)
	rid, _ := jsonrpc.MakeID(id)
	if err := l.conn.Write(l.t.Context(), &jsonrpc.Request{ID: rid, Method: method, Params: json.RawMessage(params)}); err != nil {
		l.t.Fatal(err)
	}
	return id
}

func (l *line) notify(method, params string) {
	l.t.Helper()
	if err := l.conn.Write(l.t.Context(), &jsonrpc.Request{Method: method, Params: json.RawMessage(params)}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *line) call(tool string, args map[string]any) string {
	l.t.Helper()
	text, _ := json.Marshal(map[string]any{"name": tool, "arguments": args})
	return l.send("tools/call", string(text))
}

// answer reads the next answer.
func (l *line) answer() (id string, content map[string]any) {
	l.t.Helper()
	for {
		m, err := l.conn.Read(l.t.Context())
		if err != nil {
			l.t.Fatal(err)
		}
		r, ok := m.(*jsonrpc.Response)
		if !ok {
			continue
		}
		id, _ = r.ID.Raw().(string)
		var result struct {
			StructuredContent map[string]any `json:"structuredContent"`
		}
		_ = json.Unmarshal(r.Result, &result)
		return id, result.StructuredContent
	}
}

func (l *line) answers(n int) map[string]map[string]any {
	l.t.Helper()
	all := map[string]map[string]any{}
	for range n {
		id, content := l.answer()
		all[id] = content
	}
	return all
}

// orderDefinition asks for the step work again and again; as "parent" it has that done by a subworkflow.
func orderDefinition(t *testing.T, name string) object {
	t.Helper()
	d := definitionFile(t, "step")
	at(t, d, "document").(object)["name"] = name
	nodes := []any{
		object{"id": "begin", "type": "start"}, object{"id": "work", "type": "step", "config": object{"handler": "urn:work"}},
		object{"id": "again", "type": "switch", "config": object{"cases": []any{object{"when": "(.k // 0) < 1000", "target": "work"}}, "default": "finish"}},
		object{"id": "finish", "type": "end"},
	}
	edges := []any{object{"source": "__start__", "target": "begin"}, object{"source": "begin", "target": "work"}, object{"source": "work", "target": "again"}}
	if name == "parent" {
		nodes = []any{nodes[0], object{"id": "work", "type": "subworkflow", "config": object{"workflow_ref": "urn:child", "input_mapping": object{}}}, nodes[3]}
		edges = append(edges[:2], object{"source": "work", "target": "finish"})
	}
	d["nodes"], d["edges"] = nodes, edges
	return d
}

// TestABurstIsAppliedInItsOrder sends outcomes for a subworkflow without waiting for answers, by its own id and by that of its root,
// between calls that wait, that nobody waits for any more, and that are refused before or after they reach a tool.
func TestABurstIsAppliedInItsOrder(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	child, err := json.Marshal(orderDefinition(t, "child"))
	if err != nil {
		t.Fatal(err)
	}
	runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{
		DefaultMode: machine.HostMediated,
	})))
	if err := runner.RegisterWorkflow("urn:child", enginetest.Must(definition.Parse(child))); err != nil {
		t.Fatal(err)
	}
	l := newLine(t, runner)
	l.call("workflow_start", object{"definition": orderDefinition(t, "parent"), "execution_id": "r"})
	_, started := l.answer()
	id := at(t, started, "pending", 0, "execution_id")
	const burst = 120
	last := ""
	for i := range burst {
		switch i % 6 {
		case 0:
			l.send("tools/call", `{"arguments":{"execution_id":"r"}}`)
		case 1:
			l.send("tools/call", `{"name":"nothing","arguments":{"execution_id":"r"}}`)
		case 2:
			l.call("workflow_submit_activity", object{"execution_id": "r:sub:nothing", "node_id": "work"})
		case 3:
			l.call("workflow_status", object{"execution_id": "r", "wait_ms": 20000})
			l.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":"c%d"}`, l.next))
		}
		last = l.call("workflow_submit_activity", object{
			"execution_id": []any{"r", id}[i%2], "node_id": "work", "wait_ms": 20000 * (i / 2 % 2), "outcome": object{"ok": true, "result": object{"k": i}},
		})
	}
	for answered := ""; answered != last; {
		answered, _ = l.answer()
	}
	var got []any
	for _, r := range enginetest.Must(store.Read(t.Context(), fmt.Sprint(id), 1, 0)) {
		if r.Name == history.ActivityCompleted {
			got = append(got, r.Payload.Result.Value.(object)["k"])
		}
	}
	want := []any{}
	for i := range burst {
		want = append(want, float64(i))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("applied in the order %v", got)
	}
}

// TestACallThatWaitsHoldsUpNoOther cancels a run while its start and two other calls wait for it.
func TestACallThatWaitsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runner := enginetest.Closing(t, enginetest.Must(graph.New(historymem.New(), graph.Options{
			Activities: activities.ExecutorFunc(func(ctx context.Context, _ activities.Request) (activities.Result, error) {
				<-ctx.Done()
				return activities.Result{}, ctx.Err()
			}),
		})))
		l := newLine(t, runner)
		began := time.Now()
		l.call("workflow_start", object{"definition": definitionFile(t, "step"), "execution_id": "r", "wait_ms": 20000})
		for range 2 {
			l.call("workflow_status", object{"execution_id": "r", "wait_ms": 20000})
		}
		last := l.call("workflow_cancel", object{"execution_id": "r"})
		answers := l.answers(4)
		if got := answers[last]["status"]; got != "cancelled" || time.Since(began) > time.Second {
			t.Errorf("the run is %v after %s", got, time.Since(began))
		}
	})
}

// crowded is an engine whose starts take until they are let go.
type crowded struct {
	graph.Engine
	at  chan struct{}
	let chan struct{}
}

func (c crowded) Start(context.Context, graph.StartRequest) (*view.Run, error) {
	c.at <- struct{}{}
	<-c.let
	return &view.Run{ExecutionID: "r", Status: machine.Running}, nil
}

func (c crowded) Cancel(context.Context, graph.CancelRequest) (*view.Run, error) {
	return &view.Run{ExecutionID: "r", Status: machine.Cancelled}, nil
}

// TestACrowdOfStartsLeavesRoom: only some of many starts are at work at once, and a cancel is answered meanwhile.
func TestACrowdOfStartsLeavesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const starts = 200
		engine := crowded{at: make(chan struct{}, starts), let: make(chan struct{})}
		l := newLine(t, engine)
		for range starts {
			l.call("workflow_start", object{"definition_ref": "step"})
		}
		last := l.call("workflow_cancel", object{"execution_id": "r"})
		if id, _ := l.answer(); id != last {
			t.Errorf("%s is answered first", id)
		}
		synctest.Wait()
		if n := len(engine.at); n == 0 || n > starts/2 {
			t.Errorf("%d starts are at work", n)
		}
		close(engine.let)
		l.answers(starts)
	})
}
