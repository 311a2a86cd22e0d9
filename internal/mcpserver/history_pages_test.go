package mcpserver_test

import (
	"context"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// reads is an engine that counts what it reads of histories.
type reads struct {
	*graph.Runner
	records, bytes, most int
}

func (r *reads) History(ctx context.Context, req graph.HistoryRequest) ([]history.Record, error) {
	records, err := r.Runner.History(ctx, req)
	bytes := 0
	for i := range records {
		bytes += len(records[i].Raw)
	}
	r.records, r.bytes, r.most = r.records+len(records), r.bytes+bytes, max(r.most, bytes)
	return records, err
}

// TestLargeRecordsAreReadAFewAtATime: a page of a history has room for little of large records, so it reads no more of them than it shows and
// some beyond, and holds a few. The same goes for the search after the block of an outcome that came late.
func TestLargeRecordsAreReadAFewAtATime(t *testing.T) {
	t.Parallel()
	const size = 50_000
	engine := &reads{Runner: enginetest.Closing(t, enginetest.Must(graph.New(enginetest.Closing(t, historymem.New()), hostMediated)))}
	h := connectHost(t, engine, mcpserver.Options{})
	h.ok("workflow_start", object{"execution_id": "r", "definition": `{"document":{"schema":"s","name":"n","version":"1"},"state_schema":{"type":"object"},` +
		`"nodes":[{"id":"s","type":"start"},{"id":"n","type":"step","config":{"handler":"h"}},{"id":"m","type":"switch","config":{"cases":[{"when":".n < 99","target":"n"}],"default":"e"}},{"id":"e","type":"end"}],` +
		`"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"n"},{"source":"n","target":"m"}]}`})
	for i := range 60 {
		h.ok("workflow_submit_activity", object{
			"execution_id": "r", "node_id": "n", "outcome": object{"ok": true, "result": object{"n": i, "text": strings.Repeat("x", size)}},
		})
	}
	for _, args := range []object{{"limit": 200}, {"limit": 200, "from_seq": 2}, {"limit": 200, "answer_bytes": 4096}} {
		*engine = reads{Runner: engine.Runner}
		args["execution_id"] = "r"
		page := h.ok("workflow_history", args)
		shown := len(page["records"].([]any))
		if total := page["total"].(float64); total < 500 || shown == 0 || shown > 199 {
			t.Fatalf("%d of %v records are shown", shown, total)
		}
		if most := shown + 8 + 64; engine.records > most {
			t.Errorf("%v read %d records to show %d", args, engine.records, shown)
		}
		if engine.most > 8*(size+1000) {
			t.Errorf("%v read %d bytes at once", args, engine.most)
		}
	}
	*engine = reads{Runner: engine.Runner}
	h.refused("ACTIVITY_SUBMIT_NODE_MISMATCH", "workflow_submit_activity", object{
		"execution_id": "r", "node_id": "elsewhere", "outcome": object{"ok": true},
	})
	if engine.records < 500 || engine.most > 8*(size+1000) {
		t.Errorf("the search after a block read %d records, and %d bytes of them at once", engine.records, engine.most)
	}
	t.Logf("%d records, %d bytes, %d at once", engine.records, engine.bytes, engine.most)
}
