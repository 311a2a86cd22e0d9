package graph_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// otherEngine writes rows to a file as another engine of the protocol does: one by one, without the members that this engine adds.
type otherEngine struct {
	t  *testing.T
	db *sql.DB
}

func (o *otherEngine) append(id, lines string) {
	o.t.Helper()
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		rec, err := historytest.ParseRecord(line)
		if err != nil {
			o.t.Fatal(err)
		}
		if _, err := o.db.Exec(`INSERT INTO history (execution_id, seq, kind, name, payload_json, created_at, record_schema_version)
			SELECT ?, COALESCE(MAX(seq), 0) + 1, ?, ?, ?, ?, 1 FROM history WHERE execution_id = ?`,
			id, string(rec.Kind), string(rec.Name), string(rec.AppendPayload(nil, id)), history.FormatTimestamp(time.Now()), id); err != nil {
			o.t.Fatal(err)
		}
	}
}

// wantReadable checks that the rows of a run hold what the other engine reads of them (spec: execution, 2.2 and 2.3).
func (o *otherEngine) wantReadable(id string, d *definition.Document) {
	o.t.Helper()
	rows, err := o.db.Query("SELECT seq, name, payload_json FROM history WHERE execution_id = ? ORDER BY seq", id)
	if err != nil {
		o.t.Fatal(err)
	}
	defer rows.Close()
	next := int64(1)
	for ; rows.Next(); next++ {
		var seq int64
		var name, text string
		if err := rows.Scan(&seq, &name, &text); err != nil {
			o.t.Fatal(err)
		}
		value, err := jsonvalue.Decode([]byte(text))
		p, _ := value.(map[string]any)
		if err != nil || seq != next || p["executionId"] != id {
			o.t.Fatalf("row %d is %d %s: %v", next, seq, text, err)
		}
		for _, member := range map[string][]string{
			"ExecutionStarted": {"workflowName", "workflowVersion", "inputKeys"}, "ScheduleNode": {"nodeId"}, "CompleteNode": {"nodeId", "output"},
			"StateUpdated": {"nodeId", "state"}, "ActivityRequested": {"nodeId", "nodeType", "attempt"}, "ActivityCompleted": {"nodeId", "result"},
			"InterruptRaised": {"nodeId", "prompt"}, "RaiseInterrupt": {"nodeId", "prompt"}, "ResumeInterrupt": {"nodeId"},
			"CheckpointWritten": {"nodeId", "policy", "definitionHash", "lastAppliedEventSeq", "stateRef"}, "ExecutionCompleted": {"result"},
		}[name] {
			if p[member] == nil {
				o.t.Errorf("row %d, %s, has no %s: %s", seq, name, member, text)
			}
		}
		if hash := p["definitionHash"]; hash != nil && hash != d.Hash() {
			o.t.Errorf("row %d is of definition %v", seq, hash)
		}
	}
}

// TestEnginesTakeTurns continues a run here and there in turn, each time in another process: over an interrupt, a retry and a
// loop, with checkpoints. A fork of such a run stands where the run stood.
func TestEnginesTakeTurns(t *testing.T) {
	t.Parallel()
	d := workflow(t, "turns", []string{
		startNode(), interrupt("i"), tool("t", `"retry":{"max_attempts":3}`),
		`{"id":"w","type":"switch","config":{"cases":[{"when":".n < 4","target":"t"}],"default":"e"}}`, endNode(),
	}, "s i", "i t", "t w")
	path := filepath.Join(t.TempDir(), "runs.db")
	here := func(do func(*graph.Runner)) {
		t.Helper()
		store, err := historysql.Open(t.Context(), path, historysql.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := graph.New(store, graph.Options{})
		if err != nil {
			t.Fatal(err)
		}
		do(r)
		closeRunner(t, r)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	pending := func(run *view.Run, key string) {
		t.Helper()
		if len(run.Pending) != 1 || run.Pending[0].IdempotencyKey != run.ExecutionID+":"+key || !run.Pending[0].Host || run.Status != machine.AwaitingActivity {
			t.Fatalf("%s %q, pending %+v, want %s", run.Status, run.Error, run.Pending, key)
		}
	}
	here(func(r *graph.Runner) {
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Mode: machine.HostMediated}); err != nil {
			t.Fatal(err)
		}
	})
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	there := &otherEngine{t, db}
	there.wantReadable("r", d)
	there.append("r", `
		C ResumeInterrupt i
		E InterruptResumed i
		C CompleteNode i {"output":{"ok":true}}
		E StateUpdated i {"state":{"ok":true}}
		E CheckpointWritten i {"policy":"after_each_node","workflowVersion":"1","definitionHash":"`+d.Hash()+`","lastAppliedEventSeq":13,"stateRef":{"kind":"inline_state","state":{"ok":true}}}
		C ScheduleNode t
		E NodeScheduled t
		E ActivityRequested t {"nodeType":"tool_call","attempt":1}
		E ActivityFailed t {"error":"no","attempt":1,"willRetry":true}
		E ActivityRequested t {"nodeType":"tool_call","attempt":2}`)
	here(func(r *graph.Runner) {
		pending(status(t, r, "r"), "t#1.2")
		pending(submit(t, r, "r", "t", object{"n": 1}), "t#2.1")
	})
	there.wantReadable("r", d)
	there.append("r", `
		E ActivityCompleted t {"nodeType":"tool_call","result":{"n":2}}
		C CompleteNode t {"output":{"n":2}}
		E StateUpdated t {"state":{"ok":true,"n":2}}
		C ScheduleNode w
		E NodeScheduled w
		C CompleteNode w {"output":{}}
		E StateUpdated w {"state":{"ok":true,"n":2}}
		C ScheduleNode t
		E NodeScheduled t
		E ActivityRequested t {"nodeType":"tool_call","attempt":1}`)
	here(func(r *graph.Runner) {
		run := status(t, r, "r")
		pending(run, "t#3.1")
		forked, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", Seq: run.Seq, NewExecutionID: "f"})
		if err != nil {
			t.Fatal(err)
		}
		pending(forked, "t#3.1")
	})
	for _, id := range []string{"r", "f"} {
		here(func(r *graph.Runner) {
			pending(status(t, r, id), "t#3.1")
			pending(submit(t, r, id, "t", object{"n": 3}), "t#4.1")
			if run := submit(t, r, id, "t", object{"n": 4}); run.Status != machine.Completed || !sameJSON(run.FinalState, object{"ok": true, "n": 4}) {
				t.Errorf("%s: %s %q with %v", id, run.Status, run.Error, run.FinalState)
			}
		})
		there.wantReadable(id, d)
	}
}
