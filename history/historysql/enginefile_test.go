package historysql_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestReferenceText holds testdata/reference.sql against the traces it is made of.
func TestReferenceText(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ref.db")
	r := openReference(t, path)
	runs := referenceRuns(t)
	var ids []string
	for id := range runs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		r.append(id, runs[id]...)
	}
	got := dump(t, path)
	golden := filepath.Join("testdata", "reference.sql")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || string(want) != got {
		t.Errorf("the dump of a file of the reference differs from %s, %v:\n%s", golden, err, got)
	}
}

// recordsIn returns the records of a run of a database of the npm engine, as traces have them.
func recordsIn(t *testing.T, f *historysql.EngineFile, id string) (out []string) {
	t.Helper()
	records, err := f.Records(id)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records {
		if r.Seq != int64(i+1) || !r.Foreign || r.CreatedAt.Before(historytest.Begin) {
			t.Errorf("%s: record %d is %+v", id, i+1, r)
		}
		out = append(out, string(r.Kind)+" "+string(r.Name)+" "+string(r.Raw))
	}
	return out
}

// TestAnEngineFileIsRead, the present form and the one before record versions, and is not changed.
func TestAnEngineFileIsRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"reference.sql", "reference_old.sql"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := atRestOf(t, name)
			before := folderOf(t, path)
			f, err := historysql.OpenEngineFile(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			want := referenceRuns(t)
			ids, err := f.Runs()
			if err != nil || len(ids) != len(want) || !slices.IsSorted(ids) {
				t.Fatalf("runs %v, %v", ids, err)
			}
			for id, lines := range want {
				got := recordsIn(t, f, id)
				for i, line := range lines {
					rec, err := historytest.ParseRecord(line)
					if err != nil {
						t.Fatal(err)
					}
					if text := string(rec.Kind) + " " + string(rec.Name) + " " + string(rec.AppendPayload(nil, id)); i >= len(got) || got[i] != text {
						t.Errorf("%s: record %d of %d is not %s", id, i+1, len(got), text)
					}
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if after := folderOf(t, path); !slices.Equal(before, after) {
				t.Errorf("before: %s\nafter: %s", before, after)
			}
		})
	}
}

// TestAnEngineFileInUse is read as of one moment, with the records in its WAL; the engine goes on writing.
func TestAnEngineFileInUse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.sqlite")
	r := openReference(t, path)
	r.append("a", "E ExecutionStarted", "C ScheduleNode s")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := historysql.OpenEngineFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	r.append("a", "E NodeScheduled s")
	r.append("b", "E ExecutionStarted")
	if ids, err := f.Runs(); err != nil || !slices.Equal(ids, []string{"a"}) {
		t.Errorf("runs %v, %v", ids, err)
	}
	if got := recordsIn(t, f, "a"); len(got) != 2 {
		t.Errorf("records %v", got)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != string(content) {
		t.Errorf("the file was changed, %v", err)
	}
}

// TestAnEngineFileThatWasLeftOpen has a WAL that nobody has copied into it: the process was killed.
func TestAnEngineFileThatWasLeftOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.sqlite")
	r := openReference(t, path)
	r.append("a", "E ExecutionStarted", "C ScheduleNode s")
	left := filepath.Join(t.TempDir(), "history.sqlite")
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if suffix == "-wal" { // a transaction that was cut off is none
			content = append(content, strings.Repeat("x", 100)...)
		}
		if err := os.WriteFile(left+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := []string{hashOf(t, left), hashOf(t, left+"-wal")}
	f, err := historysql.OpenEngineFile(t.Context(), left)
	if err != nil {
		t.Fatal(err)
	}
	if got := recordsIn(t, f, "a"); len(got) != 2 {
		t.Errorf("records %v", got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if after := []string{hashOf(t, left), hashOf(t, left+"-wal")}; !slices.Equal(before, after) {
		t.Errorf("the files were changed")
	}
}

func hashOf(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestDamagedRunsOfAnEngineFile: each is named, and the others can be read.
func TestDamagedRunsOfAnEngineFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.sqlite")
	r := openReference(t, path)
	for _, id := range []string{"good", "json", "newer", "gap", "kind", "time"} {
		r.append(id, `E ExecutionStarted {"workflowName":"w"}`, "C ScheduleNode a", `E SignalWaitStarted a {"signalName":"s"}`)
	}
	r.exec("UPDATE history SET payload_json = '{\"executionId\":' WHERE execution_id = 'json' AND seq = 2")
	r.exec("UPDATE history SET record_schema_version = 2 WHERE execution_id = 'newer' AND seq = 3")
	r.exec("DELETE FROM history WHERE execution_id = 'gap' AND seq = 2")
	r.exec("UPDATE history SET kind = 'thing' WHERE execution_id = 'kind' AND seq = 2")
	r.exec("UPDATE history SET created_at = 'yesterday' WHERE execution_id = 'time' AND seq = 1")
	f, err := historysql.OpenEngineFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	for id, want := range map[string]problem.Code{
		"json": problem.HistoryCorrupt, "newer": problem.HistoryNewer, "gap": problem.HistoryCorrupt, "kind": problem.HistoryCorrupt, "time": problem.HistoryCorrupt,
	} {
		_, err := f.Records(id)
		if p, ok := problem.As(err); !ok || p.Code != want || p.At.ExecutionID != id {
			t.Errorf("%s: %v, want %s", id, err, want)
		}
	}
	if got := recordsIn(t, f, "good"); len(got) != 3 {
		t.Errorf("records %v", got)
	}
}

// TestOtherFilesAreNoEngineFiles: a database of this engine, and one of another application.
func TestOtherFilesAreNoEngineFiles(t *testing.T) {
	t.Parallel()
	own := filepath.Join(t.TempDir(), "runs.db")
	openFile(t, own, historysql.Options{})
	other := filepath.Join(t.TempDir(), "other.db")
	(&reference{t, plain(t, other)}).exec("CREATE TABLE t (x)")
	for path, want := range map[string]problem.Code{own: problem.UsageError, other: problem.HistoryCorrupt, filepath.Join(t.TempDir(), "none.db"): problem.StoreUnavailable} {
		if _, err := historysql.OpenEngineFile(t.Context(), path); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}
