package historytest

import (
	"fmt"
	"testing"

	"github.com/workflows-engine/workflows-engine/history"
)

// treeUse: the usage of a tree is the sum over its runs, ended ones included. A run whose id only starts with the root's id is not part of it.
func treeUse(t *testing.T, s history.Store) {
	want := func(root string, ids ...string) history.TreeUse {
		t.Helper()
		var sum history.TreeUse
		for _, id := range ids {
			e := got[history.Execution](t)(s.Execution(t.Context(), id))
			sum.Add(&e, 1)
		}
		if use := got[history.TreeUse](t)(s.Tree(t.Context(), root)); use != sum {
			t.Errorf("%s has used %+v, its runs %+v", root, use, sum)
		}
		return sum
	}
	want("p")
	ended(t, s, "p2", "w", "ExecutionCompleted", 100)
	ended(t, s, "p:su", "w", "ExecutionCompleted", 100)
	ended(t, s, "p:sub;", "w", "ExecutionCompleted", 100)
	want("p")
	parent := NewTrace(t, "p")
	parent.Append(s, Start("w", "in_process")...)
	parent.Append(s, "C ScheduleNode a", `E ActivityRequested a {"nodeType":"step","attempt":1}`, "C ScheduleNode b", `E ActivityRequested b {"nodeType":"step","attempt":1}`)
	if use := want("p", "p"); use.Runs != 1 || use.Pending != 2 || use.Visits < 2 || use.Records != parent.Execution.Seq || use.Bytes == 0 {
		t.Errorf("got %+v", use)
	}
	parent.Append(s, `E ActivityFailed a {"nodeType":"step","attempt":1,"willRetry":true,"retryAt":"2026-11-21T02:00:00Z"}`, "E ActivityCompleted b")
	ended(t, s, "p:sub:v", "child", "ExecutionCompleted", 90)
	ids := []string{"p", "p:sub:v"}
	for i := range 5 { // a failed run with an open wait no longer counts as waiting
		id := fmt.Sprintf("p:sub:v#%d:sub:é", i)
		NewTrace(t, id).Append(s, append(Start("w", "in_process"), "C ScheduleNode a", `E ActivityRequested a {"nodeType":"step","attempt":1}`, "E ExecutionFailed")...)
		ids = append(ids, id)
	}
	if use := want("p", ids...); use.Runs != 7 || use.Pending != 1 {
		t.Errorf("got %+v", use)
	}
	want("p:sub:v", "p:sub:v")
	want("p:sub:v#3", ids[5])
	if p, ok := s.(history.Pruner); ok {
		got[history.PrunePage](t)(p.Prune(t.Context(), history.PruneQuery{}))
		want("p", ids...)
		parent.Append(s, "E ExecutionCompleted")
		for q := (history.PruneQuery{Limit: 1}); ; {
			page := got[history.PrunePage](t)(p.Prune(t.Context(), q))
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				break
			}
		}
		want("p")
	}
	for id, root := range map[string]string{
		"p": "p", "p:sub:v": "p", "p:sub:v#2:sub:u": "p", "p:su": "p:su", ":sub:v": ":sub:v", ":sub:v:sub:u": ":sub:v", "": "", "p:sub:sub:v": "p:sub",
	} {
		if got := history.Root(id); got != root {
			t.Errorf("the root of %q is %q, expected %q", id, got, root)
		}
	}
}
