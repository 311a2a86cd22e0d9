package historytest

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// projectionEqualsFold: at every point of a run the stored projection is the fold of its records.
func projectionEqualsFold(t *testing.T, s history.Store) {
	x := NewTrace(t, "x")
	for _, batch := range [][]string{
		Start("w", "host_mediated"),
		delegatePending[5:],
		{`E ActivityFailed d {"error":"no","attempt":1,"willRetry":true,"retryAt":"2026-11-21T01:05:00.000Z"}`},
		{`E ActivityRequested d {"nodeType":"agent_delegate","attempt":2,"activityExecutionMode":"host_mediated"}`},
		Node("d", "t"),
		{`E ActivityFailed t {"error":"no","attempt":1}`, `C FailNode t {"reason":"activity_failed","message":"no"}`, `E ExecutionFailed {"error":"no"}`},
	} {
		x.Append(s, batch...)
		checkProjection(t, s, "x")
		listed := got[history.ListPage](t)(s.List(t.Context(), history.ListQuery{}))
		if e := got[history.Execution](t)(s.Execution(t.Context(), "x")); !reflect.DeepEqual(listed.Executions, []history.Execution{e}) {
			t.Errorf("listed as %+v, known as %+v", listed.Executions, e)
		}
	}
}

// checkProjection compares the stored projection of a run with the fold of its records.
func checkProjection(t testing.TB, s history.Store, id string) {
	t.Helper()
	e := got[history.Execution](t)(s.Execution(t.Context(), id))
	want := history.Project(id, read(t, s, id))
	want.Bytes = e.Bytes // counted by the store
	if !bytes.Equal(e.AppendText(nil), want.AppendText(nil)) || !reflect.DeepEqual(e, want) {
		t.Errorf("the projection of %s is\n%s\nits records fold to\n%s", id, e.AppendText(nil), want.AppendText(nil))
	}
}

// positions: a position has the seq of the batch that stored it.
func positions(t *testing.T, s history.Store) {
	x := NewTrace(t, "x")
	x.Append(s, Start("w", "in_process")...)
	wantPosition(t, s, "x", 0, "")
	b := x.Batch("C ScheduleNode a")
	b.Position = []byte{0, 1, 255}
	must(t, s.Append(t.Context(), b))
	wantPosition(t, s, "x", 6, "\x00\x01\xff")
	x.Append(s, "E NodeScheduled a")
	wantPosition(t, s, "x", 6, "\x00\x01\xff")
	b = x.Batch("E ActivityRequested a")
	b.Position = bytes.Repeat([]byte("long"), 10_000)
	must(t, s.Append(t.Context(), b))
	wantPosition(t, s, "x", 8, string(b.Position))
	x.Append(s, "E ActivityCompleted a")
	wantPosition(t, s, "x", 8, string(b.Position))
	b = x.Batch("C ScheduleNode b")
	b.Position = []byte("short")
	must(t, s.Append(t.Context(), b))
	wantPosition(t, s, "x", 10, "short")
	b = x.Batch("E NodeScheduled b")
	b.Position = bytes.Repeat([]byte("LONG"), 20_000)
	must(t, s.Append(t.Context(), b))
	wantPosition(t, s, "x", 11, string(b.Position))
	x.Append(s, End()...)
	wantPosition(t, s, "x", 0, "")
}

// definitionPages: definitions are listed newest first, in the order in which they were first stored, with the store's time.
func definitionPages(t *testing.T, s history.Store) {
	ctx := t.Context()
	list := func(limit int) (out [][]string) {
		t.Helper()
		for cursor := ""; ; {
			page := got[history.DefinitionPage](t)(s.Definitions(ctx, cursor, limit))
			var hashes []string
			for _, d := range page.Definitions {
				hashes = append(hashes, d.Hash)
			}
			out = append(out, hashes)
			if cursor = page.NextCursor; cursor == "" || len(out) > 100 {
				return out
			}
		}
	}
	want := func(limit int, want string) {
		t.Helper()
		if got := fmt.Sprint(list(limit)); got != want {
			t.Errorf("pages of %d: got %s, want %s", limit, got, want)
		}
	}
	want(0, "[[]]")
	before := got[time.Time](t)(s.Now(ctx))
	text := []byte("{}")
	for i, hash := range []string{"h1", "h3", "h2", "h5"} {
		must(t, s.PutDefinition(ctx, history.StoredDefinition{Hash: hash, Name: "w", Version: fmt.Sprint(i), Text: text}))
	}
	b := NewTrace(t, "x").Batch(Start("w", "in_process")...)
	b.Definition = &history.StoredDefinition{Hash: "h4", Name: "v", Version: "1", Text: text}
	must(t, s.Append(ctx, b))
	must(t, s.PutDefinition(ctx, history.StoredDefinition{Hash: "h1", Name: "w", Version: "0", Text: text})) // stored already
	want(0, "[[h4 h5 h2 h3 h1]]")
	want(5, "[[h4 h5 h2 h3 h1]]")
	want(2, "[[h4 h5] [h2 h3] [h1]]")
	want(1, "[[h4] [h5] [h2] [h3] [h1]]")
	page := got[history.DefinitionPage](t)(s.Definitions(ctx, "", 2))
	first, after := page.Definitions[0], got[time.Time](t)(s.Now(ctx))
	at := first.StoredAt
	if first.StoredAt = (time.Time{}); first != (history.DefinitionEntry{Hash: "h4", Name: "v", Version: "1"}) {
		t.Errorf("got %+v", first)
	}
	if at.Before(before.Truncate(time.Millisecond)) || at.After(after) || at.Location() != time.UTC {
		t.Errorf("stored at %v, between %v and %v", at, before, after)
	}
	// A cursor stays valid when definitions come and go.
	must(t, s.PutDefinition(ctx, history.StoredDefinition{Hash: "h6", Name: "w", Version: "6", Text: text}))
	if p, ok := s.(history.Pruner); ok {
		if _, err := p.PruneDefinitions(ctx, false); err != nil {
			t.Fatal(err)
		}
		left := list(100)[0]
		next := got[history.DefinitionPage](t)(s.Definitions(ctx, page.NextCursor, 0))
		for _, d := range next.Definitions {
			if !slices.Contains(left, d.Hash) || d.Hash == "h4" || d.Hash == "h6" {
				t.Errorf("listed %s of %v", d.Hash, left)
			}
		}
	}
	for _, limit := range []int{-1, 101} {
		wantRefusal(t, problem.ValidationError)(s.Definitions(ctx, "", limit))
	}
	for _, bad := range []string{"x", "1x", "2026-11-21T01:00:00.005Z|a"} {
		wantRefusal(t, problem.InvalidListCursor)(s.Definitions(ctx, bad, 0))
	}
}

func definitions(t *testing.T, s history.Store) {
	ctx := t.Context()
	wantRefusal(t, problem.DefinitionNotFound)(s.Definition(ctx, "h1"))
	wantRefusal(t, problem.DefinitionNotFound)(s.DefinitionByName(ctx, "w", ""))

	first := history.StoredDefinition{Hash: "h1", Name: "w", Version: "1", Text: []byte(`{"v":1}`)}
	second := history.StoredDefinition{Hash: "h2", Name: "w", Version: "2", Text: []byte(`{"v":2}`)}
	repaired := history.StoredDefinition{Hash: "h3", Name: "w", Version: "1", Text: []byte(`{"v":1,"w":"é"}`)}
	must(t, s.PutDefinition(ctx, first))
	b := NewTrace(t, "x").Batch("E ExecutionStarted")
	b.Definition = &second
	must(t, s.Append(ctx, b))
	must(t, s.PutDefinition(ctx, repaired))
	// The same hash again changes neither the text nor the order of versions.
	must(t, s.PutDefinition(ctx, history.StoredDefinition{Hash: "h2", Name: "w", Version: "2", Text: []byte(`other`)}))
	// But signatures are added: later signatures never replace existing ones, however many come.
	for _, signature := range []string{`{"value":"a"}`, `{"value":"b"}`, ``, `{"value":" a ","keyId":"k"}`} {
		signed := first
		if signature != "" {
			signed.Signatures = [][]byte{[]byte(signature)}
		}
		must(t, s.PutDefinition(ctx, signed))
	}
	first.Signatures = [][]byte{[]byte(`{"value":"a"}`), []byte(`{"value":"b"}`)}
	repaired.Signatures = nil
	for i := range history.MaxSignatures {
		repaired.Signatures = append(repaired.Signatures, fmt.Appendf(nil, `{"value":"%d"}`, i))
	}
	many := repaired
	many.Signatures = append(slices.Clone(repaired.Signatures), []byte(`{"value":"one too many"}`))
	must(t, s.PutDefinition(ctx, many))
	must(t, s.PutDefinition(ctx, first))

	check := func(d history.StoredDefinition, err error, want history.StoredDefinition) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(d, want) {
			t.Errorf("got %+v, %v, want %+v", d, err, want)
		}
	}
	for _, want := range []history.StoredDefinition{first, second, repaired} {
		d, err := s.Definition(ctx, want.Hash)
		check(d, err, want)
	}
	d, err := s.DefinitionByName(ctx, "w", "")
	check(d, err, repaired)
	d, err = s.DefinitionByName(ctx, "w", "1")
	check(d, err, repaired)
	d, err = s.DefinitionByName(ctx, "w", "2")
	check(d, err, second)
	wantRefusal(t, problem.DefinitionNotFound)(s.DefinitionByName(ctx, "w", "3"))
	wantRefusal(t, problem.DefinitionNotFound)(s.DefinitionByName(ctx, "", "1"))
	wantCode(t, s.PutDefinition(ctx, history.StoredDefinition{Name: "w"}), problem.Internal)
	wantCode(t, s.PutDefinition(ctx, history.StoredDefinition{Hash: "h1", Signatures: [][]byte{[]byte("{}\n")}}), problem.Internal)
}
