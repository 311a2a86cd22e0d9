package cli

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

const refundFlow = `{"document":{"schema":"s","name":"refunds","version":"1"},"state_schema":{"type":"object"},
 "nodes":[{"id":"a","type":"start"},{"id":"work","type":"agent_delegate","config":{"agent_id":"clerk","protocol":"sdk","input_mapping":{"task":"Refund it."}}},{"id":"z","type":"end"}],
 "edges":[{"source":"__start__","target":"a"},{"source":"a","target":"work"},{"source":"work","target":"z"}]}`

// desk is the tool that refunds, and the model that asks for it, as they stand outside of all processes.
type desk struct {
	mu   sync.Mutex
	keys map[string]int
	// dies is the store of the process that dies when the refund is done, and before that is recorded.
	dies atomic.Pointer[historytest.FaultStore]
	down atomic.Bool
}

func (d *desk) Tools(context.Context) ([]agent.Tool, error) {
	return []agent.Tool{{Name: "refund", Parameters: map[string]any{"type": "object"}, OnCrash: agent.Repeat}}, nil
}

func (d *desk) Call(_ context.Context, call agent.Call) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys[call.Key]++
	if s := d.dies.Load(); s != nil {
		s.Set(historytest.Fault{At: 1, Reads: true, Dead: true})
	}
	return "refunded", nil
}

func (d *desk) Chat(_ context.Context, req chat.Request) (chat.Reply, error) {
	switch {
	case req.Messages[len(req.Messages)-1].Role != chat.Result:
		return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "refund", Arguments: "{}"}}}, nil
	case d.down.Load():
		return chat.Reply{}, activities.Fail(problem.LLMProviderError, "the provider is down")
	}
	return chat.Reply{Text: "done"}, nil
}

// TestARefundThroughThreeDoors: a process dies after a refund, the provider fails, and the run is tried again by a command, by a tool call and
// by a call in Go: what is refunded has one key throughout.
func TestARefundThroughThreeDoors(t *testing.T) {
	t.Parallel()
	ctx, folder := t.Context(), t.TempDir()
	path, file := filepath.Join(folder, "runs.db"), filepath.Join(folder, "refunds.workflow.json")
	if err := os.WriteFile(file, []byte(refundFlow), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &desk{keys: map[string]int{}}
	agents := enginetest.Must(agent.New(agent.Config{
		Models: map[string]agent.Model{"main": {Chat: d, Model: agentloop.Model{Model: "m"}}},
		Agents: map[string]agent.Agent{"clerk": {Config: agentloop.Config{Instructions: "You work.", Retry: agentloop.Retry{MaxAttempts: 1}}, Tools: []agent.Toolset{d}}},
	}))
	delegates := activities.Composite{SDK: agents}
	command := func(mortal bool, args ...string) (status int, output string) {
		a, stdout, stderr := newTestApp(t, strings.NewReader(""), time.Now())
		a.newEngine = func(s history.Store, o graph.Options) (graph.Engine, error) {
			if o.Delegates = delegates; mortal {
				fault := historytest.NewFaultStore(s)
				d.dies.Store(fault)
				s = fault
			}
			return graph.New(s, o)
		}
		status = a.execute(ctx, append(args, "--db", path))
		d.dies.Store(nil)
		return status, stdout.String() + stderr.String()
	}
	want := func(door string, keys map[string]int) {
		t.Helper()
		d.mu.Lock()
		defer d.mu.Unlock()
		if !maps.Equal(d.keys, keys) {
			t.Errorf("%s: called %v, want %v", door, d.keys, keys)
		}
	}
	const key = "r:work#1.1/t1.c1"

	command(true, "run", file, "--id", "r")
	want("the process that dies", map[string]int{key: 1})
	store := enginetest.Must(historysql.Open(ctx, path, historysql.Options{}))
	defer store.Close()
	if err := store.Release(ctx, enginetest.Must(store.Owner(ctx, "r")).Process); err != nil { // its time is over
		t.Fatal(err)
	}
	d.down.Store(true)
	if status, output := command(false, "recover", "r"); status != exitFailed || !strings.Contains(output, "its agent continues after t1.c1; 1 call is not repeated:") {
		t.Fatalf("recover: status %d\n%s", status, output)
	}
	repeated := map[string]int{key: 2} // by the rule of the tool, under the key by which the other side can tell
	want("the process that takes over", repeated)
	if _, output := command(false, "status", "r"); !strings.Contains(output, "this command continues after t1.c1; 1 call is not repeated:\n  workflows-engine retry r --db "+path+"\n") {
		t.Errorf("status:\n%s", output)
	}

	if status, output := command(false, "retry", "r", "--id", "r2"); status != exitFailed || !strings.Contains(output, "LLM_PROVIDER_ERROR") {
		t.Fatalf("retry: status %d\n%s", status, output)
	}
	want("a command", repeated)

	r := enginetest.Must(graph.New(store, graph.Options{Delegates: delegates}))
	defer r.Close()
	here, there := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() {
		served <- mcpserver.Serve(context.Background(), mcpserver.New(r, mcpserver.Options{Definitions: store}), there)
	}()
	session := enginetest.Must(mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, nil).Connect(ctx, here, nil))
	answer, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "workflow_fork", Arguments: map[string]any{"execution_id": "r2", "new_execution_id": "r3"}})
	if err != nil || !answer.IsError {
		t.Errorf("workflow_fork: %+v, %v", answer, err)
	}
	status, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "workflow_status", Arguments: map[string]any{"execution_id": "r3"}})
	if err != nil || !strings.Contains(status.Content[0].(*mcp.TextContent).Text, "continues after t1.c1; 1 call is not repeated") {
		t.Errorf("workflow_status: %+v, %v", status, err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	want("a tool call", repeated)

	d.down.Store(false)
	run, err := r.Fork(ctx, graph.ForkRequest{ExecutionID: "r3", NewExecutionID: "r4"})
	if err != nil || run.Status != machine.Completed {
		t.Errorf("Fork: %+v, %v", run, err)
	}
	want("a call in Go", repeated)
	if page := enginetest.Must(r.List(ctx, history.ListQuery{Unhandled: true, Phase: history.PhaseFailed})); len(page.Executions) > 0 {
		t.Errorf("%d failed runs need somebody, though the last retry has completed", len(page.Executions))
	}
}
