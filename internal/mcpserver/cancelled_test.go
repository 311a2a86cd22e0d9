package mcpserver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// patient is an engine whose questions are answered to nobody.
type patient struct{ graph.Engine }

func (patient) Status(ctx context.Context, _ graph.StatusRequest) (*view.Run, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestACancelledCallIsNoFault: where a call that its client has cancelled is answered all the same, the answer says what happened.
func TestACancelledCallIsNoFault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, patient{enginetest.Closing(t, enginetest.Must(graph.New(historymem.New(), graph.Options{})))})
		waits := l.call("workflow_status", object{"execution_id": "r"})
		synctest.Wait()
		l.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%q}`, waits))
		id, content := l.answer()
		if id != waits || at(t, content, "error", "details", "engineCode") != "CALL_CANCELLED" {
			t.Errorf("%s: %v", id, content)
		}
	})
}

// TestInitializeInAnOpenSession: the refusal says that the session is open, with which revision, and what to do; it calls duplicate only what is.
func TestInitializeInAnOpenSession(t *testing.T) {
	t.Parallel()
	const initialize = `{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`
	const meta = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"0"}}}`
	for _, c := range []struct {
		opens, revision string
		duplicate       bool
	}{
		{fmt.Sprintf(initialize, 1), "2025-06-18", true},
		{`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":` + meta + `}`, "2026-07-28", false},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":` + meta + `}`, "2026-07-28", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire(t)
			w.send(c.opens)
			answer := decode(t, w.send(fmt.Sprintf(initialize, 2)))
			message, _ := at(t, answer, "error", "message").(string)
			if at(t, answer, "error", "code") != -32600.0 || strings.Contains(message, "duplicate") != c.duplicate ||
				!strings.Contains(message, c.revision) || !strings.Contains(message, "new connection") {
				t.Errorf("after %s: %v", c.opens, answer)
			}
		})
	}
}
