package historytest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

func appendAndRead(t *testing.T, s history.Store) {
	x := NewTrace(t, "x")
	x.Append(s, Start("w", "in_process")...)
	x.Append(s, "C ScheduleNode a")
	NewTrace(t, "y").Append(s, "E ExecutionStarted")
	want := []history.Name{
		history.ExecutionStarted, history.ScheduleNode, history.NodeScheduled, history.CompleteNode, history.StateUpdated, history.ScheduleNode,
	}
	rs := read(t, s, "x")
	if got := names(rs); !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i, r := range rs {
		if r.Seq != int64(i+1) || r.Kind != r.Name.Kind() {
			t.Errorf("record %d has seq %d and kind %s", i, r.Seq, r.Kind)
		}
		if text := r.Text("x"); !strings.HasPrefix(string(text), `{"executionId":"x"`) {
			t.Errorf("record %d is stored as %s", i, text)
		}
	}
	if got := read(t, s, "y"); len(got) != 1 {
		t.Errorf("the other run has %d records", len(got))
	}
}

func readInParts(t *testing.T, s history.Store) {
	x := NewTrace(t, "x")
	x.Append(s, Start("w", "in_process")...)
	for _, c := range []struct {
		from  int64
		limit int
		want  []int64
	}{
		{0, 0, []int64{1, 2, 3, 4, 5}},
		{-7, 2, []int64{1, 2}},
		{1, 1, []int64{1}},
		{4, 0, []int64{4, 5}},
		{4, 9, []int64{4, 5}},
		{5, 0, []int64{5}},
		{6, 0, nil},
		{100, 3, nil},
	} {
		var seqs []int64
		for _, r := range got[[]history.Record](t)(s.Read(t.Context(), "x", c.from, c.limit)) {
			seqs = append(seqs, r.Seq)
		}
		if !slices.Equal(seqs, c.want) {
			t.Errorf("from %d, limit %d: got %v, want %v", c.from, c.limit, seqs, c.want)
		}
	}
}

func recordsComeBack(t *testing.T, s history.Store) {
	x := NewTrace(t, "x")
	// Another zone and finer than a millisecond: the stored time is UTC, truncated to the millisecond.
	x.Now = time.Date(2026, 11, 21, 3, 3, 46, 919_123_456, time.FixedZone("", 2*3600))
	x.Append(s,
		`E ExecutionStarted {"workflowName":"wörk <flow> \"q\"","workflowVersion":"1","inputKeys":["2","a"],"input":{"a":null,"n":1e21}}`,
		`E StateUpdated n {"state":{"text":"a\u0000b\ud83d\ude00\u2028","deep":[[{"x":[]}]],"f":0.1,"t":true}}`,
		`E ExecutionCompleted {"result":null}`)
	first := read(t, s, "x")
	if want := time.Date(2026, 11, 21, 1, 3, 46, 919e6, time.UTC); !first[0].CreatedAt.Equal(want) || first[0].CreatedAt.Location() != time.UTC {
		t.Errorf("the time became %v", first[0].CreatedAt)
	}
	if e := got[history.Execution](t)(s.Execution(t.Context(), "x")); e.CreatedAt != first[0].CreatedAt || e.UpdatedAt != first[0].CreatedAt {
		t.Errorf("the times of the run became %v and %v", e.CreatedAt, e.UpdatedAt)
	}
	state := first[1].Payload.State
	want := map[string]any{"text": "a\x00b😀\u2028", "deep": []any{[]any{map[string]any{"x": []any{}}}}, "f": 0.1, "t": true}
	if !reflect.DeepEqual(state, want) {
		t.Errorf("the state became %v", state)
	}
	if r := first[2].Payload.Result; !r.Set || r.Value != nil {
		t.Errorf("a null result became %+v", r)
	}
	for _, r := range first {
		if raw := r.AppendPayload(nil, "x"); string(raw) != string(r.Text("x")) {
			t.Errorf("%s: stored\n%s\nwritten again\n%s", r.Name, r.Text("x"), raw)
		}
	}
}

func seqsAreIgnored(t *testing.T, s history.Store) {
	b := NewTrace(t, "x").Batch("E ExecutionStarted", "C ScheduleNode a")
	b.Records[0].Seq, b.Records[1].Seq = 70, 7
	must(t, s.Append(t.Context(), b))
	if rs := read(t, s, "x"); rs[0].Seq != 1 || rs[1].Seq != 2 {
		t.Errorf("got seqs %d and %d", rs[0].Seq, rs[1].Seq)
	}
}

func conflictsChangeNothing(t *testing.T, s history.Store) {
	x := NewTrace(t, "x")
	x.Append(s, Start("w", "in_process")...)
	before := describeAll(t, s, "x")
	conflicting := func(seq int64, lines ...string) history.Batch {
		b := NewTrace(t, "x").Batch(lines...)
		b.ExpectedSeq = seq
		b.Execution.Seq = seq + int64(len(lines))
		fill(&b)
		b.Owner = "o"
		return b
	}
	for _, seq := range []int64{0, 1, 4, 6, 7, 1000} {
		err := s.Append(t.Context(), conflicting(seq, "C ScheduleNode a", "E NodeScheduled a"))
		wantCode(t, err, problem.HistoryConflict)
		// A batch that begins again is no exception.
		err = s.Append(t.Context(), conflicting(seq, "E ExecutionStarted"))
		wantCode(t, err, problem.HistoryConflict)
	}
	wantCode(t, s.Append(t.Context(), func() history.Batch {
		b := conflicting(3, "C ScheduleNode a")
		b.ExecutionID, b.Execution.ID = "new", "new"
		return b
	}()), problem.HistoryConflict)
	if after := describeAll(t, s, "x"); after != before {
		t.Errorf("a refused batch changed\n%s\nto\n%s", before, after)
	}
	wantRefusal(t, problem.ExecutionNotFound)(s.Execution(t.Context(), "new"))
	wantRefusal(t, problem.DefinitionNotFound)(s.Definition(t.Context(), "h"))
	x.Append(s, "C ScheduleNode a")
}

// describeAll returns everything that a store holds of a run.
func describeAll(t *testing.T, s history.Store, id string) string {
	t.Helper()
	e := got[history.Execution](t)(s.Execution(t.Context(), id))
	seq, position, err := s.Position(t.Context(), id)
	must(t, err)
	due := got[[]history.Timer](t)(s.DueTimers(t.Context(), Begin.Add(24*time.Hour), 0))
	orphans := got[[]string](t)(s.Unowned(t.Context(), 0))
	owner := got[history.Owner](t)(s.Owner(t.Context(), id))
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nposition %d %q\ntimers %v\norphans %v\nowner %q\n", e.AppendText(nil), seq, position, due, orphans, owner.Process)
	for _, r := range read(t, s, id) {
		fmt.Fprintf(&b, "%d %s %s %s\n", r.Seq, r.Kind, r.Name, r.Text(id))
	}
	return b.String()
}

func faultyBatchIsRefused(t *testing.T, s history.Store) {
	good := NewTrace(t, "x").Batch("E ExecutionStarted")
	for name, spoil := range map[string]func(b *history.Batch){
		"no records":           func(b *history.Batch) { b.Records = nil },
		"an old projection":    func(b *history.Batch) { b.Execution.Seq = 0 },
		"disowned by nobody":   func(b *history.Batch) { b.Disown = true },
		"another's projection": func(b *history.Batch) { b.Execution.ID = "y" },
		"a key of no text":     func(b *history.Batch) { b.Timers = []history.Timer{{Key: "\xff", Due: Begin}} },
	} {
		b := good
		spoil(&b)
		if err := s.Append(t.Context(), b); err == nil {
			t.Errorf("%s: not refused", name)
		} else {
			wantCode(t, err, problem.Internal)
		}
	}
	if rs := read(t, s, "x"); len(rs) != 0 {
		t.Errorf("refused batches left %d records", len(rs))
	}
}

func longBatches(t *testing.T, s history.Store) {
	x := NewTrace(t, "x")
	total := 0
	for _, n := range []int{1, 7, 31, 32, 33, 64, 65, 300} {
		batch := make([]string, n)
		for i := range batch {
			total++
			batch[i] = fmt.Sprintf("E NodeScheduled n%d", total)
		}
		x.Append(s, batch...)
	}
	rs := read(t, s, "x")
	if len(rs) != total {
		t.Fatalf("got %d records, want %d", len(rs), total)
	}
	for i, r := range rs {
		if want := fmt.Sprintf("n%d", i+1); r.Payload.NodeID != want {
			t.Fatalf("record %d is that of %s, want %s", i+1, r.Payload.NodeID, want)
		}
	}
}

func largePayloads(t *testing.T, s history.Store) {
	x := NewTrace(t, "x")
	sizes := []int{900, 3000, 70_000, 400_000}
	for _, n := range sizes {
		x.Append(s, fmt.Sprintf(`E StateUpdated n {"state":{"s":%q}}`, strings.Repeat("é", n/2)), "C ScheduleNode m")
	}
	rs := read(t, s, "x")
	for i, n := range sizes {
		if text, _ := rs[2*i].Payload.State["s"].(string); len(text) != n {
			t.Errorf("a text of %d bytes became one of %d", n, len(text))
		}
	}
}

// badIDs are invalid ids of runs.
var badIDs = []string{"not UTF-8: \xff", "cut: \xc3", strings.Repeat("i", history.MaxIDBytes+1)}

func unusualIDs(t *testing.T, s history.Store) {
	ids := []string{
		" ", "a|b", "x:sub:y", `"quoted" 'too'`, "ünï/../%2f?#", strings.Repeat("i", history.MaxIDBytes), "nul\x00in it", "nul", "%", "_",
	}
	for _, id := range ids {
		NewTrace(t, id).Append(s, "E ExecutionStarted", "C ScheduleNode a")
	}
	for _, id := range ids {
		if rs := read(t, s, id); len(rs) != 2 {
			t.Errorf("%q: got %d records", id, len(rs))
		}
		if e := got[history.Execution](t)(s.Execution(t.Context(), id)); e.ID != id {
			t.Errorf("%q: the projection is that of %q", id, e.ID)
		}
		wantClaim(t, s, "p", []string{id}, id)
	}
	for _, id := range badIDs {
		wantCode(t, s.Append(t.Context(), NewTrace(t, id).Batch("E ExecutionStarted")), problem.ValidationError)
		if importer, ok := s.(history.Importer); ok {
			wantCode(t, importer.Import(t.Context(), history.Import{Runs: []history.ImportedRun{imported(t, id, "E ExecutionStarted")}}), problem.ValidationError)
		}
	}
	if page := got[history.ListPage](t)(s.List(t.Context(), history.ListQuery{})); len(page.Executions) != len(ids) {
		t.Errorf("the list has %d runs", len(page.Executions))
	}
}

func unknownIDs(t *testing.T, s history.Store) {
	ctx := t.Context()
	NewTrace(t, "x").Append(s, "E ExecutionStarted")
	for _, id := range append([]string{"", "X", "x ", "x\x00", "y"}, badIDs...) {
		wantRefusal(t, problem.ExecutionNotFound)(s.Execution(ctx, id))
		if rs := read(t, s, id); len(rs) != 0 {
			t.Errorf("%q has %d records", id, len(rs))
		}
		wantPosition(t, s, id, 0, "")
		if o := got[history.Owner](t)(s.Owner(ctx, id)); o != (history.Owner{}) {
			t.Errorf("%q is owned by %+v", id, o)
		}
		wantClaim(t, s, "p", []string{id, "x"}, "x")
		must(t, s.Disown(ctx, "p", id, "x"))
	}
}
