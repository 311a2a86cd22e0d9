package historytest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// failure is the end of a failed run.
const failure = `E ExecutionFailed {"error":"boom"}`

// marks lists the handled runs among ids.
func marks(t *testing.T, s history.Store, ids ...string) string {
	t.Helper()
	found := got[map[string]history.Handling](t)(s.Handled(t.Context(), ids...))
	var out []string
	for _, id := range ids {
		if h, ok := found[id]; ok {
			out = append(out, fmt.Sprintf("%s: %s %q %q %q %d", id, h.ExecutionID, h.Note, h.Retry, h.Actor, h.At.UnixMilli()-Begin.UnixMilli()))
		}
	}
	return strings.Join(out, "; ")
}

// unhandledIDs lists the runs of a query that excludes handled runs.
func unhandledIDs(t *testing.T, s history.Store, q history.ListQuery) string {
	t.Helper()
	q.Unhandled = true
	var ids []string
	for {
		page := got[history.ListPage](t)(s.List(t.Context(), q))
		for i := range page.Executions {
			ids = append(ids, page.Executions[i].ID)
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return strings.Join(ids, " ")
		}
	}
}

func same(t *testing.T, what, found, want string) {
	t.Helper()
	if found != want {
		t.Errorf("%s: %s, want %s", what, found, want)
	}
}

func handled(t *testing.T, s history.Store) {
	ctx := t.Context()
	child := "a" + history.ChildMark + "n"
	for _, id := range []string{"a", child, "b"} {
		NewTrace(t, id).Append(s, lines(Start("w", "in_process"), []string{failure})...)
	}
	NewTrace(t, "done").Append(s, lines(Start("w", "in_process"), End())...)
	NewTrace(t, "open").Append(s, Start("w", "in_process")...)
	all := []string{"a", child, "b", "done", "open", "nobody"}
	same(t, "none", marks(t, s, all...), "")
	same(t, "list of none", unhandledIDs(t, s, history.ListQuery{}), "a a:sub:n b done open")

	at := Begin.Add(time.Second)
	must(t, s.Handle(ctx, history.Handling{ExecutionID: "a", Note: "paid by hand", Actor: "ann (command)", At: at.Add(time.Microsecond)}))
	same(t, "a subworkflow is handled with its root", marks(t, s, all...),
		`a: a "paid by hand" "" "ann (command)" 1000; a:sub:n: a "paid by hand" "" "ann (command)" 1000`)
	same(t, "list", unhandledIDs(t, s, history.ListQuery{}), "b done open")
	same(t, "pages", unhandledIDs(t, s, history.ListQuery{Limit: 1}), "b done open")
	same(t, "failed", unhandledIDs(t, s, history.ListQuery{Phase: history.PhaseFailed, DefinitionName: "w"}), "b")
	same(t, "below", unhandledIDs(t, s, history.ListQuery{Below: "a"}), "")
	if page := got[history.ListPage](t)(s.List(ctx, history.ListQuery{Phase: history.PhaseFailed})); len(page.Executions) != 3 {
		t.Errorf("a list of all failed runs has %d", len(page.Executions))
	}

	must(t, s.Handle(ctx, history.Handling{ExecutionID: child, Note: "its own", At: at}))
	must(t, s.Handle(ctx, history.Handling{ExecutionID: "a", Note: "told the customer", At: at.Add(time.Second)}))
	same(t, "the newer mark", marks(t, s, all...), `a: a "told the customer" "" "" 2000; a:sub:n: a:sub:n "its own" "" "" 1000`)
	must(t, s.Unhandle(ctx, "a"))
	must(t, s.Unhandle(ctx, "b"))
	same(t, "undone", marks(t, s, all...), `a:sub:n: a:sub:n "its own" "" "" 1000`)
	same(t, "list of what was undone", unhandledIDs(t, s, history.ListQuery{}), "a b done open")

	for id, h := range map[string]history.Handling{
		"open": {Note: "n", At: at}, "done": {Note: "n", At: at}, "b": {Note: " \n", At: at}, "a": {Note: strings.Repeat("x", history.MaxNoteBytes+1), At: at},
	} {
		h.ExecutionID = id
		wantCode(t, s.Handle(ctx, h), problem.ValidationError)
	}
	wantCode(t, s.Handle(ctx, history.Handling{ExecutionID: "nobody", Note: "n", At: at}), problem.ExecutionNotFound)
	wantCode(t, s.Unhandle(ctx, "nobody"), problem.ExecutionNotFound)
	same(t, "refused marks", marks(t, s, all...), `a:sub:n: a:sub:n "its own" "" "" 1000`)
}

// retry makes the batch that begins a run with the past of another run.
func retry(t *testing.T, id string, l history.Link, more ...string) (*Trace, history.Batch) {
	t.Helper()
	x := NewTrace(t, id)
	b := x.Batch(append([]string{fmt.Sprintf(
		`E ExecutionStarted {"workflowName":"w","definitionHash":"h","activityMode":"in_process","forkedFrom":{"executionId":%q,"seq":3}}`, l.From)}, more...)...)
	l.At = Begin
	b.Link = &l
	return x, b
}

// retriesOfOneWork: a run, its retries and their retries form one unit of work. While one of them is open, or after one has completed,
// the others are retried only with Again. The failed runs of completed work count as handled, whether they failed before or after.
func retriesOfOneWork(t *testing.T, s history.Store) {
	ctx := t.Context()
	begin := func(id, from string, again bool, more ...string) (*Trace, error) {
		x, b := retry(t, id, history.Link{From: from, Kind: history.Retried, Seq: 3, Again: again}, more...)
		return x, s.Append(ctx, b)
	}
	begun := func(id, from string, again bool, more ...string) *Trace {
		t.Helper()
		x, err := begin(id, from, again, more...)
		must(t, err)
		return x
	}
	refused := func(live string, from ...string) {
		t.Helper()
		for _, id := range from {
			_, err := begin("no", id, false)
			if !errors.Is(err, problem.AlreadyRetried) || !strings.Contains(err.Error(), fmt.Sprintf("%q", live)) {
				t.Errorf("a retry of %s beside %s: %v", id, live, err)
			}
		}
	}
	live := func(id, want string) {
		t.Helper()
		e := got[history.Execution](t)(s.Execution(ctx, id))
		must(t, history.AddLineage(ctx, s, &e))
		if e.Lineage.Live != want {
			t.Errorf("%s: %q does its work, want %q", id, e.Lineage.Live, want)
		}
	}
	for _, id := range []string{"a", "z"} {
		NewTrace(t, id).Append(s, lines(Start("w", "in_process"), []string{failure})...)
	}
	begun("a1", "a", false, failure)
	below := begun("a1b", "a1", false)
	refused("a1b", "a", "a1")
	live("a", "a1b")
	begun("z1", "z", false, failure)
	late := begun("a2", "a", true)
	done := begun("a3", "a", true)
	begun("a3x", "a", true, failure)
	below.Append(s, failure)
	live("a1b", "a2") // the oldest open run
	done.Append(s, End()...)
	refused("a3", "a", "a1", "a1b", "a3x")
	late.Append(s, failure)
	refused("a3", "a2")
	for _, id := range []string{"a", "a1", "a1b", "a2", "a3x"} {
		live(id, "a3")
	}
	live("z", "")
	at := func(x *Trace) int64 { return x.Execution.UpdatedAt.UnixMilli() - Begin.UnixMilli() }
	same(t, "marks", marks(t, s, "a", "a1", "a1b", "a2", "a3", "a3x", "z", "z1"), fmt.Sprintf(
		`a: a "" "a3" "" %[1]d; a1: a1 "" "a3" "" %[1]d; a1b: a1b "" "a3" "" %[1]d; a2: a2 "" "a3" "" %[2]d; a3x: a3x "" "a3" "" %[1]d`, at(done), at(late)))
	same(t, "list", unhandledIDs(t, s, history.ListQuery{Phase: history.PhaseFailed}), "z z1")

	// The work stays completed after its completed run is deleted. Again still allows a retry.
	if p, ok := s.(history.Pruner); ok {
		got[history.PrunePage](t)(p.Prune(ctx, history.PruneQuery{Before: Begin.Add(time.Hour), Phases: []history.Phase{history.PhaseCompleted}}))
		refused("a3", "a", "a1", "a1b", "a2", "a3x")
		live("a1", "a3")
	}
	begun("a4", "a1", true)
}

func handledByRetries(t *testing.T, s history.Store) {
	ctx := t.Context()
	NewTrace(t, "a").Append(s, lines(Start("w", "in_process"), []string{failure})...)
	begin := func(id string, l history.Link, more ...string) *Trace {
		t.Helper()
		x, b := retry(t, id, l, more...)
		must(t, s.Append(ctx, b))
		return x
	}
	begin("fork", history.Link{From: "a", Kind: history.Forked, Seq: 3}, End()...)
	same(t, "a fork that completes", marks(t, s, "a", "fork"), "")
	begin("r1", history.Link{From: "a", Kind: history.Retried, Seq: 3}, failure)
	same(t, "a retry that fails", marks(t, s, "a", "r1"), "")
	r2 := begin("r2", history.Link{From: "r1", Kind: history.Retried, Seq: 3})
	same(t, "a retry that is open", marks(t, s, "a", "r1"), "")
	must(t, s.Handle(ctx, history.Handling{ExecutionID: "r1", Note: "looked at", At: Begin}))
	r2.Append(s, End()...)
	same(t, "a retry that completes", marks(t, s, "a", "r1", "r2"),
		fmt.Sprintf(`a: a "" "r2" "" %d; r1: r1 "looked at" "" "" 0`, r2.Execution.UpdatedAt.UnixMilli()-Begin.UnixMilli()))
	same(t, "list", unhandledIDs(t, s, history.ListQuery{Phase: history.PhaseFailed}), "")

	// A run handled by a retry stays handled after the retry is deleted. A mark is deleted with its run.
	p, ok := s.(history.Pruner)
	if !ok {
		return
	}
	got[history.PrunePage](t)(p.Prune(ctx, history.PruneQuery{Before: Begin.Add(time.Hour), Phases: []history.Phase{history.PhaseCompleted}}))
	if marks(t, s, "a") == "" {
		t.Error("a run needs somebody again, because its retry is deleted")
	}
	got[history.PrunePage](t)(p.Prune(ctx, history.PruneQuery{Before: Begin.Add(time.Hour)}))
	same(t, "deleted", marks(t, s, "a", "r1"), "")
}
