package runfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/history/runfile"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

type importingStore interface {
	history.Store
	history.Importer
}

// FuzzWhatIsStoredComesBack: a value that the doors let in can be appended to either store, read back, shown, exported,
// and imported into the other store, as the same value.
func FuzzWhatIsStoredComesBack(f *testing.F) {
	for _, text := range []string{
		`null`, `"a\u2028\u0000😀\\\""`, `[1e308,-0,5e-324,9007199254740992]`, `{"":{"$ref":1},"token":"x","v":[[],{}]}`,
		strings.Repeat("[", jsonvalue.MaxDepth-2) + strings.Repeat("]", jsonvalue.MaxDepth-2),
		strings.Repeat("[", jsonvalue.MaxDepth+1) + strings.Repeat("]", jsonvalue.MaxDepth+1),
		strings.Repeat(`{"a":`, jsonvalue.MaxDepth-1) + `"` + strings.Repeat("x", 5000) + `"` + strings.Repeat("}", jsonvalue.MaxDepth-1),
		strings.Repeat("[", 9990) + strings.Repeat("]", 9990),
	} {
		f.Add(text)
	}
	var stores [4]importingStore
	for i := range stores {
		if stores[i] = historymem.New(); i < 2 {
			store, err := historysql.Open(f.Context(), filepath.Join(f.TempDir(), fmt.Sprint(i)), historysql.Options{Synchronous: historysql.Normal})
			if err != nil {
				f.Fatal(err)
			}
			stores[i] = store
		}
		f.Cleanup(func() { stores[i].Close() })
	}
	run := 0
	f.Fuzz(func(t *testing.T, text string) {
		v, _, err := jsonvalue.DecodeExact([]byte(text))
		if err != nil {
			return
		}
		plain, err := jsonvalue.Normalize(map[string]any{"v": v})
		if tooDeep := jsonvalue.TooDeep([]byte(text), jsonvalue.MaxDepth-1); tooDeep != errors.Is(err, jsonvalue.ErrTooDeep) || err != nil && !tooDeep {
			t.Fatalf("too deep: %v, refused: %v", tooDeep, err)
		}
		if err != nil {
			return
		}
		state := plain.(map[string]any)
		lines := append(historytest.Start("w", "in_process"), `E StateUpdated a {"state":`+string(jsonvalue.Canonical(state))+`}`)
		for i, store := range stores {
			run++
			id := fmt.Sprint("run-", run)
			batch := historytest.NewTrace(t, id).Batch(lines...)
			if err := store.Append(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			file := export(t, id, readBack(t, store, id, state))
			other := stores[(i+2)%len(stores)]
			imported := history.ImportedRun{ExecutionID: id, Records: file.Runs[0].Records, Execution: batch.Execution}
			if err := other.Import(t.Context(), history.Import{Runs: []history.ImportedRun{imported}}); err != nil {
				t.Fatal(err)
			}
			readBack(t, other, id, state)
		}
	})
}

// readBack returns the records of a run whose last one holds a state.
func readBack(t *testing.T, store history.Store, id string, state map[string]any) []history.Record {
	t.Helper()
	records, err := store.Read(t.Context(), id, 1, 0)
	if err != nil || len(records) == 0 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	last := &records[len(records)-1]
	if !jsonvalue.Equal(last.Payload.State, state) {
		t.Fatalf("%s, was %s", jsonvalue.Canonical(last.Payload.State), jsonvalue.Canonical(state))
	}
	for i := range records {
		if raw := records[i].AppendPayload(nil, id); !json.Valid(raw) || !json.Valid(history.DefaultRedaction().Text(raw)) {
			t.Fatalf("no JSON: %s", raw)
		}
	}
	return records
}

// export returns what is read of a file with the run.
func export(t *testing.T, id string, records []history.Record) *runfile.File {
	t.Helper()
	var out bytes.Buffer
	w := runfile.NewWriter(&out, false)
	if err := errors.Join(w.Header(id, historytest.Begin), w.Run(runfile.Run{ExecutionID: id, Records: records}), w.Trailer()); err != nil {
		t.Fatal(err)
	}
	file, err := runfile.Read(&out)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestRecordsNestedTooDeeplyAreNotImported: a store can read them, but what wraps them could not be read again.
func TestRecordsNestedTooDeeplyAreNotImported(t *testing.T) {
	t.Parallel()
	deep := func(levels int) []byte {
		records := records(t, "r", append(historytest.Start("w", "in_process"), `E StateUpdated a {"state":{"v":1}}`)...)
		last := &records[len(records)-1]
		last.Raw = bytes.Replace(last.Raw, []byte(`"v":1`), []byte(`"v":`+strings.Repeat("[", levels)+strings.Repeat("]", levels)), 1)
		var out bytes.Buffer
		w := runfile.NewWriter(&out, false)
		if err := errors.Join(w.Header("r", historytest.Begin), w.Run(runfile.Run{ExecutionID: "r", Records: records}), w.Trailer()); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	if _, err := runfile.Read(bytes.NewReader(deep(jsonvalue.MaxDepth))); err != nil {
		t.Error(err)
	}
	if _, err := runfile.Read(bytes.NewReader(deep(2 * jsonvalue.MaxDepth))); !errors.Is(err, problem.ImportInvalid) {
		t.Errorf("%v", err)
	}
}
