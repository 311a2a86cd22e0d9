package graph_test

import (
	"bytes"
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// TestLargeSteps: what is large in a step is stored once beside the records, counts in what the run takes, is exported, imported and forked
// whole, and goes with the last run that has it.
func TestLargeSteps(t *testing.T) {
	t.Parallel()
	const size = 100_000
	large := strings.Repeat("0123456789", size/10)
	work := journaled(func(ctx context.Context, j activities.Journal) (activities.End, error) {
		steps, err := j.Steps(ctx)
		if err != nil {
			return activities.End{}, err
		}
		if len(steps) == 0 {
			err := j.Record(ctx, activities.Step{Key: "a", Kind: "made", Body: object{"text": large}}, activities.Step{Key: "b", Kind: "made"})
			return activities.End{Question: &activities.Question{Key: "q", Prompt: "Go on?", Body: object{"text": large}}}, err
		}
		return activities.End{Result: &activities.Result{Output: object{"length": len(steps[0].Body["text"].(string)), "steps": len(steps)}}}, nil
	})
	open := func() (*graph.Runner, *historysql.Store, string) {
		path := filepath.Join(t.TempDir(), "runs.db")
		store, err := historysql.Open(t.Context(), path, historysql.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return newRunner(t, store, graph.Options{Activities: work}), store, path
	}
	blobs := func(path string) (n, bytes int) {
		t.Helper()
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.QueryRow("SELECT count(*), coalesce(sum(octet_length(content)), 0) FROM blobs").Scan(&n, &bytes); err != nil {
			t.Fatal(err)
		}
		return n, bytes
	}
	finish := func(r *graph.Runner, id string) {
		t.Helper()
		run := settled(t, r, id)
		if p := first(run); p == nil || p.Kind != machine.WaitInterrupt || !sameJSON(p.Show, object{"text": large}) {
			t.Fatalf("%s waits for %+v", id, p)
		}
		_, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: id, Payload: object{"ok": true}})
		if err != nil {
			t.Fatal(err)
		}
		if run = settled(t, r, id); run.Status != machine.Completed || !sameJSON(run.FinalState["length"], size) || !sameJSON(run.FinalState["steps"], 5) {
			t.Errorf("%s is %s: %v %v", id, run.Status, run.FinalState, run.Error)
		}
	}
	sound := func(store history.Verifier) {
		t.Helper()
		if _, err := store.Verify(t.Context(), "", false, func(f history.Finding) { t.Errorf("%s %d %s %s", f.ExecutionID, f.Seq, f.Code, f.Message) }); err != nil {
			t.Error(err)
		}
	}

	r, store, path := open()
	start(t, r, "r", workflow(t, "w", []string{startNode(), tool("work"), endNode()}, "s work", "work e"), nil)
	settled(t, r, "r")
	if n, bytes := blobs(path); n != 1 || bytes > size+100 {
		t.Errorf("%d blobs of %d bytes", n, bytes)
	}
	var file bytes.Buffer
	if err := r.Export(t.Context(), "r", graph.ExportOptions{Now: time.Now()}, &file); err != nil {
		t.Fatal(err)
	}
	for _, rec := range records(t, store, "r") {
		if key, _, _, _ := rec.Payload.Step(); key == "b" {
			if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: "fork", Seq: rec.Seq}); err != nil {
				t.Fatal(err)
			}
		}
	}
	finish(r, "r")
	sound(store)

	elsewhere, otherStore, otherPath := open()
	if _, err := elsewhere.Import(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	if n, bytes := blobs(otherPath); n != 1 || bytes > size+100 {
		t.Errorf("imported: %d blobs of %d bytes", n, bytes)
	}
	finish(elsewhere, "r")
	sound(otherStore)

	prune := func(r *graph.Runner, dry bool) history.PrunePage {
		t.Helper()
		page, err := r.Prune(t.Context(), history.PruneQuery{Phases: []history.Phase{history.PhaseCompleted}, Limit: 1, DryRun: dry})
		if err != nil || len(page.Trees) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		return page
	}
	if tree := prune(elsewhere, true).Trees[0]; tree.Bytes < size || tree.Bytes > 2*size {
		t.Errorf("a run with a step of %d bytes would give %d bytes back", size, tree.Bytes)
	}
	prune(elsewhere, false)
	if n, _ := blobs(otherPath); n != 0 {
		t.Errorf("%d blobs outlive their run", n)
	}
	if run := settled(t, r, "fork"); run.Status != machine.Completed || !sameJSON(run.FinalState["length"], size) {
		t.Errorf("the fork is %s: %v %v", run.Status, run.FinalState, run.Error) // its executor has seen two steps and the pause
	}
	for _, want := range []int{1, 0} { // the other run still has it, then none
		if tree := prune(r, false).Trees[0]; tree.Bytes > size != (want == 0) {
			t.Errorf("%s gives %d bytes back", tree.ExecutionID, tree.Bytes)
		}
		if n, _ := blobs(path); n != want {
			t.Errorf("%d blobs are left, not %d", n, want)
		}
	}
	sound(store)
}
