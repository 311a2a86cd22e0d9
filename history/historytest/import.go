package historytest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// imported makes a run as it comes out of a file.
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
		t.Skipf("%T takes in no runs", s)
	}
	large := fmt.Sprintf(`E StateUpdated a {"state":{"big":%q}}`, strings.Repeat("large ", 20_000))
	own := imported(t, "own", append(Start("w", "host_mediated"), large, `E TimerStarted t {"kind":"duration","dueAt":"2030-01-01T00:00:00.000Z"}`)...)
	own.Timers = []history.Timer{{ExecutionID: "own", Key: "t#1", Due: Begin}}
	other := imported(t, "other", "E ExecutionStarted", "C ScheduleNode a")
	other.Records[0].Raw = []byte(`{ "executionId": "other", "foreign": [1, 2] }`)
	in := history.Import{
		Definitions: []history.StoredDefinition{{Hash: "h", Name: "w", Version: "1", Text: []byte("{}")}},
		Runs:        []history.ImportedRun{own, other},
	}
	if err := importer.Import(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	for _, want := range in.Runs {
		e, err := s.Execution(t.Context(), want.ExecutionID)
		if err != nil || string(e.AppendText(nil)) != string(want.Execution.AppendText(nil)) {
			t.Errorf("%s: %+v, %v", want.ExecutionID, e, err)
		}
		rs, err := s.Read(t.Context(), want.ExecutionID, 1, 0)
		if err != nil || len(rs) != len(want.Records) {
			t.Fatalf("%s: %d records, %v", want.ExecutionID, len(rs), err)
		}
		var size int64
		for i := range want.Records {
			size += int64(len(want.Records[i].Raw))
		}
		if e.Bytes < size { // what stands for large values may come on top
			t.Errorf("%s: %d bytes are counted, and the records have %d", want.ExecutionID, e.Bytes, size)
		}
		for i := range rs {
			if w := &want.Records[i]; !bytes.Equal(rs[i].Text(want.ExecutionID), w.Raw) || rs[i].Name != w.Name || !rs[i].CreatedAt.Equal(w.CreatedAt) {
				t.Errorf("%s: record %d is %.200s", want.ExecutionID, i+1, rs[i].Text(want.ExecutionID))
			}
		}
	}
	due, err := s.DueTimers(t.Context(), Begin.Add(time.Hour), 0)
	if err != nil || len(due) != 1 || due[0].Key != "t#1" {
		t.Errorf("timers %+v, %v", due, err)
	}
	if _, err := s.Definition(t.Context(), "h"); err != nil {
		t.Error(err)
	}
	page, err := s.List(t.Context(), history.ListQuery{})
	if err != nil || len(page.Executions) != 2 {
		t.Errorf("listed %d, %v", len(page.Executions), err)
	}
	// Both go on.
	for _, run := range in.Runs {
		x := NewTrace(t, run.ExecutionID)
		x.Execution = run.Execution
		x.Append(s, "C ScheduleNode b")
	}
	// All or nothing.
	more := history.Import{
		Definitions: []history.StoredDefinition{{Hash: "h2", Name: "w", Version: "1", Text: []byte("{}")}},
		Runs:        []history.ImportedRun{imported(t, "new", "E ExecutionStarted"), imported(t, "own", "E ExecutionStarted")},
	}
	wantCode(t, importer.Import(t.Context(), more), problem.DuplicateExecutionID)
	if _, err := s.Execution(t.Context(), "new"); err == nil {
		t.Error("one of two runs was taken in")
	}
	if _, err := s.Definition(t.Context(), "h2"); err == nil {
		t.Error("the definition of a refused import was stored")
	}
}
