package historytest

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"

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
