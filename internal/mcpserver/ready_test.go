package mcpserver_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// TestCallsWaitForTheEngine connects to a server whose engine is not ready: the handshake and the list are answered, a call
// waits until the engine is.
func TestCallsWaitForTheEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ready := make(chan struct{})
		var late struct{ graph.Engine }
		h := connectHost(t, &late, mcpserver.Options{Ready: ready})
		answered := make(chan error, 1)
		go func() {
			_, err := h.session.CallTool(context.Background(), &mcp.CallToolParams{Name: "workflow_list", Arguments: map[string]any{}})
			answered <- err
		}()
		synctest.Wait()
		select {
		case err := <-answered:
			t.Fatalf("answered before the engine was ready: %v", err)
		default:
		}
		store := historymem.New()
		runner, err := graph.New(store, graph.Options{})
		if err != nil {
			t.Fatal(err)
		}
		late.Engine = runner
		close(ready)
		if err := <-answered; err != nil {
			t.Error(err)
		}
		h.session.Close()
		if err := runner.Close(); err != nil {
			t.Error(err)
		}
		store.Close()
	})
}
