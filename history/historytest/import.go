package historytest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// imported returns a run as read from a file.
func imported(t *testing.T, id string, lines ...string) history.ImportedRun {
	t.Helper()
	b := NewTrace(t, id).Batch(lines...)
	for i := range b.Records {
		r := &b.Records[i]
		r.Seq, r.Raw = int64(i+1), r.AppendPayload(nil, id)
	}
	return history.ImportedRun{ExecutionID: id, Records: b.Records, Execution: b.Execution}
}

func importing(t *testing.T, s history.Store) {
	importer, ok := s.(history.Importer)
	if !ok {
		t.Skipf("%T cannot import runs", s)
	}
	large := fmt.Sprintf(`E StateUpdated a {"state":{"big":%q}}`, strings.Repeat("large ", 20_000))
	own := imported(t, "own", append(Start("w", "host_mediated"), large, `E TimerStarted t {"kind":"duration","dueAt":"2030-01-01T00:00:00.000Z"}`)...)
	own.Timers = []history.Timer{{ExecutionID: "ignored", Key: "t#1", Due: Begin}}
	other := imported(t, "other", "E ExecutionStarted", "C ScheduleNode a")
	for i := range other.Records {
		other.Records[i].Foreign = true
	}
	other.Records[0].Raw = []byte(`{ "executionId": "other", "foreign": [1, 2] }`)
	in := history.Import{
		Definitions: []history.StoredDefinition{{Hash: "h", Name: "w", Version: "1", Text: []byte("{}")}},
		Runs:        []history.ImportedRun{own, other},
	}
	must(t, importer.Import(t.Context(), in))
	for _, want := range in.Runs {
		id := want.ExecutionID
		e := got[history.Execution](t)(s.Execution(t.Context(), id))
		if string(e.AppendText(nil)) != string(want.Execution.AppendText(nil)) {
			t.Errorf("%s: %+v", id, e)
		}
		rs := read(t, s, id)
		if len(rs) != len(want.Records) {
			t.Fatalf("%s: %d records", id, len(rs))
		}
		var size int64
		for i := range rs {
			w := &want.Records[i]
			size += int64(len(w.Raw))
			if !bytes.Equal(rs[i].Text(id), w.Raw) || rs[i].Name != w.Name || rs[i].Foreign != w.Foreign || !rs[i].CreatedAt.Equal(w.CreatedAt) {
				t.Errorf("%s: record %d is %.200s", id, i+1, rs[i].Text(id))
			}
		}
		if e.Bytes < size { // references to large values may add to it
			t.Errorf("%s: %d bytes are counted, and the records have %d", id, e.Bytes, size)
		}
	}
	due := got[[]history.Timer](t)(s.DueTimers(t.Context(), Begin.Add(time.Hour), 0))
	if want := []history.Timer{{ExecutionID: "own", Key: "t#1", Due: Begin}}; !slices.Equal(due, want) {
		t.Errorf("got timers %+v, want %+v", due, want)
	}
	got[history.StoredDefinition](t)(s.Definition(t.Context(), "h"))
	wantPages(t, s, history.ListQuery{}, "[[other own]]")
	// Both continue.
	for _, run := range in.Runs {
		x := NewTrace(t, run.ExecutionID)
		x.Execution = run.Execution
		x.Append(s, "C ScheduleNode b")
	}
	// An open run that needs a driver lacks one.
	must(t, importer.Import(t.Context(), history.Import{Runs: []history.ImportedRun{imported(t, "driven", Start("w", "in_process")...)}}))
	wantUnowned(t, s, 0, "driven")
	if _, queues := history.As[history.Queue](s); queues {
		wantNotReady(t, s, "driven")
	}
	// All or nothing.
	more := history.Import{
		Definitions: []history.StoredDefinition{{Hash: "h2", Name: "w", Version: "1", Text: []byte("{}")}},
		Runs:        []history.ImportedRun{imported(t, "new", "E ExecutionStarted"), imported(t, "own", "E ExecutionStarted")},
	}
	wantCode(t, importer.Import(t.Context(), more), problem.DuplicateExecutionID)
	wantRefusal(t, problem.ExecutionNotFound)(s.Execution(t.Context(), "new"))
	wantRefusal(t, problem.DefinitionNotFound)(s.Definition(t.Context(), "h2"))
}
