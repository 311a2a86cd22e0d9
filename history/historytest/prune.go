package historytest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// pruner returns the store as a history.Pruner, and skips the rest of the test if it is not one.
func pruner(t *testing.T, s history.Store) history.Pruner {
	t.Helper()
	p, ok := s.(history.Pruner)
	if !ok {
		t.Skipf("%T cannot delete runs", s)
	}
	return p
}

// prune deletes page after page and returns the ids of the trees' roots.
func prune(t *testing.T, s history.Store, q history.PruneQuery) (ids []string, trees []history.PrunedTree) {
	t.Helper()
	p := pruner(t, s)
	for {
		page := got[history.PrunePage](t)(p.Prune(t.Context(), q))
		for _, tree := range page.Trees {
			ids, trees = append(ids, tree.ExecutionID), append(trees, tree)
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			slices.Sort(ids)
			return ids, trees
		}
	}
}

// ended appends a run that ends n milliseconds after Begin with event.
func ended(t *testing.T, s history.Store, id, name, event string, n int) {
	t.Helper()
	x := NewTrace(t, id)
	x.Append(s, Start(name, "in_process")...)
	x.Now = Begin.Add(time.Duration(n) * time.Millisecond)
	x.Append(s, "E "+event)
}

func pruning(t *testing.T, s history.Store) {
	pruner(t, s)
	ended(t, s, "a", "w", "ExecutionCompleted", 100)
	ended(t, s, "b", "w", "ExecutionFailed", 200)
	ended(t, s, "c", "other", "ExecutionCancelled", 300)
	ended(t, s, "d", "w", "ExecutionCompleted", 5000)
	live := NewTrace(t, "live")
	live.Append(s, Start("w", "in_process")...)
	ended(t, s, "live:sub:v", "w", "ExecutionCompleted", 100)
	ended(t, s, "p", "w", "ExecutionCompleted", 100)
	ended(t, s, "p:sub:v", "child", "ExecutionCompleted", 90)
	ended(t, s, "p:sub:v:sub:u", "child", "ExecutionFailed", 90)
	ended(t, s, "p2", "w", "ExecutionCompleted", 100) // not a child of p, though its id starts alike
	ended(t, s, "q", "w", "ExecutionCancelled", 100)
	left := NewTrace(t, "q:sub:v") // outlives its parent
	left.Append(s, Start("child", "in_process")...)

	q := history.PruneQuery{Before: Begin.Add(time.Second), Limit: 2, DryRun: true}
	want := []string{"a", "b", "c", "p", "p2"}
	if got, _ := prune(t, s, q); !slices.Equal(got, want) {
		t.Errorf("would delete %v, want %v", got, want)
	}
	for name, c := range map[string]struct {
		q    history.PruneQuery
		want []string
	}{
		"by phase":     {history.PruneQuery{Phases: []history.Phase{history.PhaseFailed}}, []string{"b"}},
		"by two":       {history.PruneQuery{Phases: []history.Phase{history.PhaseFailed, history.PhaseCancelled}}, []string{"b", "c"}},
		"by name":      {history.PruneQuery{DefinitionName: "other"}, []string{"c"}},
		"child's name": {history.PruneQuery{DefinitionName: "child"}, nil},
		"at the time":  {history.PruneQuery{Before: Begin.Add(200 * time.Millisecond)}, []string{"a", "b", "p", "p2"}},
		"before it":    {history.PruneQuery{Before: Begin.Add(199 * time.Millisecond)}, []string{"a", "p", "p2"}},
		"all":          {history.PruneQuery{}, []string{"a", "b", "c", "d", "p", "p2"}},
	} {
		c.q.DryRun = true
		if got, _ := prune(t, s, c.q); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}

	q.DryRun = false
	got, trees := prune(t, s, q)
	if !slices.Equal(got, want) {
		t.Errorf("deleted %v, want %v", got, want)
	}
	for _, tree := range trees {
		if wantRuns := map[string]int{"p": 3}[tree.ExecutionID]; tree.Executions != max(wantRuns, 1) ||
			tree.Records != int64(6*tree.Executions) || tree.Bytes < 100 {
			t.Errorf("%+v", tree)
		}
	}
	for _, id := range []string{"a", "b", "c", "p", "p:sub:v", "p:sub:v:sub:u", "p2"} {
		wantRefusal(t, problem.ExecutionNotFound)(s.Execution(t.Context(), id))
		if rs := read(t, s, id); len(rs) != 0 {
			t.Errorf("%s has %d records", id, len(rs))
		}
	}
	wantPages(t, s, history.ListQuery{}, "[[d live:sub:v q live q:sub:v]]")
	live.Append(s, "C ScheduleNode x")
	ended(t, s, "a", "w", "ExecutionCompleted", 100) // an id can be used again
	if again, _ := prune(t, s, q); !slices.Equal(again, []string{"a"}) {
		t.Errorf("deleted again %v", again)
	}
	// A tree is deleted once all its runs have ended, and so is a subworkflow whose root is gone.
	left.Now = Begin.Add(400 * time.Millisecond)
	left.Append(s, "E ExecutionCancelled")
	if again, _ := prune(t, s, q); !slices.Equal(again, []string{"q"}) {
		t.Errorf("deleted at last %v", again)
	}
	ended(t, s, "gone:sub:v", "child", "ExecutionCompleted", 100)
	if again, _ := prune(t, s, q); !slices.Equal(again, []string{"gone:sub:v"}) {
		t.Errorf("deleted of what has no root %v", again)
	}
}

func pruningArguments(t *testing.T, s history.Store) {
	p := pruner(t, s)
	wantRefusal(t, problem.ValidationError)(p.Prune(t.Context(), history.PruneQuery{Phases: []history.Phase{history.PhaseRunning}}))
	wantRefusal(t, problem.ValidationError)(p.Prune(t.Context(), history.PruneQuery{Limit: -1}))
	wantRefusal(t, problem.InvalidListCursor)(p.Prune(t.Context(), history.PruneQuery{Cursor: "x"}))
}

// pruningLarge has a tree that is deleted in several steps, with timers and an owner.
func pruningLarge(t *testing.T, s history.Store) {
	pruner(t, s)
	const rows = 5000
	x := NewTrace(t, "big")
	lines := Start("w", "in_process")
	for len(lines) < rows {
		lines = append(lines, "C ScheduleNode a")
	}
	x.Append(s, lines...)
	must(t, s.Renew(t.Context(), "o", time.Hour))
	wantClaim(t, s, "o", []string{"big"}, "big")
	x.Append(s, "E ExecutionCompleted")
	ended(t, s, "small", "w", "ExecutionCompleted", 0)
	_, trees := prune(t, s, history.PruneQuery{})
	if len(trees) != 2 {
		t.Fatalf("%+v", trees)
	}
	ended(t, s, "big", "w", "ExecutionCompleted", 0)
	if rs := read(t, s, "big"); len(rs) != 6 {
		t.Errorf("%d records", len(rs))
	}
	if o := got[history.Owner](t)(s.Owner(t.Context(), "big")); o != (history.Owner{}) {
		t.Errorf("the new run is owned by %+v", o)
	}
}

func pruningDefinitions(t *testing.T, s history.Store) {
	definition := func(hash, name, ref, pin string) history.StoredDefinition {
		text := fmt.Sprintf(`{"nodes":[{"type":"subworkflow","config":{"workflow_ref":%q,"version_pin":%q}}]}`, ref, pin)
		return history.StoredDefinition{Hash: hash, Name: name, Version: "1", Text: []byte(text)}
	}
	for _, d := range []history.StoredDefinition{
		definition("h", "used", "urn:x:child", ""), definition("c1", "child", "", ""), definition("c2", "child", "versioned@1", ""),
		definition("v", "versioned", "nowhere", "pinned"), definition("pinned", "p", "", ""), definition("z", "unused", "", ""),
	} {
		must(t, s.PutDefinition(t.Context(), d))
	}
	NewTrace(t, "r").Append(s, Start("used", "in_process")...)
	// A run is bound to old versions of its subworkflows.
	bound := NewTrace(t, "bound").Batch(`E ExecutionStarted {"definitionHash":"h","subworkflows":{"lately":"b1","known":"b0"}}`)
	bound.Subworkflows = []history.StoredDefinition{definition("b1", "lately", "", ""), definition("b0", "known", "", "")}
	must(t, s.Append(t.Context(), bound))
	for _, d := range []history.StoredDefinition{definition("b2", "lately", "", ""), definition("b3", "known", "", "")} {
		must(t, s.PutDefinition(t.Context(), d))
	}
	p := pruner(t, s)
	for _, dry := range []bool{true, false} {
		gone := got[[]history.StoredDefinition](t)(p.PruneDefinitions(t.Context(), dry))
		var hashes []string
		for _, d := range gone {
			hashes = append(hashes, d.Hash)
		}
		if !slices.Equal(hashes, []string{"c1", "z", "b2", "b3"}) {
			t.Errorf("deleted %v", hashes)
		}
	}
	for hash, want := range map[string]bool{"h": true, "c1": false, "c2": true, "v": true, "pinned": true, "z": false, "b0": true, "b1": true, "b2": false} {
		if _, err := s.Definition(t.Context(), hash); err == nil != want {
			t.Errorf("%s: %v", hash, err)
		}
	}
}
