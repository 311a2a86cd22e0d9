package historysql_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestFilesAreRefused: what is no file of histories is refused with a code that says why, and left as it is.
func TestFilesAreRefused(t *testing.T) {
	t.Parallel()
	script := func(texts ...string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			r := &reference{t, plain(t, path)}
			for _, text := range texts {
				r.exec(text)
			}
			_ = r.conn.Close()
		}
	}
	bytesOf := func(content string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		code problem.Code
	}{
		{"text", bytesOf("this is not a database, although it is long enough to hold the header of one. " + strings.Repeat("x", 200)), problem.HistoryCorrupt},
		{"short text", bytesOf("hello"), problem.HistoryCorrupt},
		{"folder", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, problem.StoreUnavailable},
		{"newer", script(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d; CREATE TABLE history (x)", historysql.ApplicationID, historysql.NewestVersion+1)), problem.HistoryNewer},
		{"another application", script("PRAGMA application_id = 77; CREATE TABLE t (x)"), problem.HistoryCorrupt},
		{"an empty one of another application", script("CREATE TABLE t (x); DROP TABLE t; PRAGMA application_id = 77"), problem.HistoryCorrupt},
		{"another version", script("PRAGMA user_version = 3; " + referenceTable), problem.HistoryCorrupt},
		{"other tables", script("CREATE TABLE t (x)"), problem.HistoryCorrupt},
		{"another form", script("CREATE TABLE history (execution_id TEXT, seq INTEGER, payload_json TEXT)"), problem.HistoryCorrupt},
		{"the npm engine's", script(referenceTable), problem.ImportRequired},
		{"no key", script("CREATE TABLE history (execution_id TEXT, seq INTEGER, kind TEXT, name TEXT, payload_json TEXT, created_at TEXT)"), problem.HistoryCorrupt},
		{"a view", script("CREATE TABLE t (execution_id, seq, kind, name, payload_json, created_at); CREATE VIEW history AS SELECT * FROM t"), problem.HistoryCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "runs.db")
			c.make(t, path)
			before, _ := os.ReadFile(path)
			for _, readOnly := range []bool{false, true} {
				s, err := historysql.Open(t.Context(), path, historysql.Options{ReadOnly: readOnly})
				if !errors.Is(err, c.code) {
					t.Errorf("read only %t: got %v, want %s", readOnly, err, c.code)
				}
				if s != nil {
					t.Error("got a store and an error")
				}
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

// TestDamagedFile: a file that is cut off or overwritten gives HISTORY_CORRUPT, at once or when the damage is met.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(content []byte) []byte{
		"cut off": func(c []byte) []byte { return c[:len(c)/3] },
		"overwritten": func(c []byte) []byte {
			for i := 4096; i < len(c); i++ {
				c[i] = 0xA5
			}
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "runs.db")
			s, err := historysql.Open(t.Context(), path, historysql.Options{})
			if err != nil {
				t.Fatal(err)
			}
			x := historytest.NewTrace(t, "x")
			x.Append(s, historytest.Start("w", "in_process")...)
			for range 100 {
				x.Append(s, historytest.Node("a", "b")...)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(content), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err = historysql.Open(t.Context(), path, historysql.Options{})
			if err == nil {
				_, err = s.Read(t.Context(), "x", 1, 0)
				_ = s.Close()
			}
			if !errors.Is(err, problem.HistoryCorrupt) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOpenArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path string
		o    historysql.Options
	}{
		{"", historysql.Options{}},
		{":memory:", historysql.Options{}},
		{filepath.Join(t.TempDir(), "x.db"), historysql.Options{Synchronous: "sometimes"}},
		{filepath.Join(t.TempDir(), "x.db"), historysql.Options{BusyTimeout: -1}},
	} {
		if _, err := historysql.Open(t.Context(), c.path, c.o); !errors.Is(err, problem.UsageError) {
			t.Errorf("%q %+v: got %v", c.path, c.o, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := historysql.Open(ctx, filepath.Join(t.TempDir(), "x.db"), historysql.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

// TestNewFile: folder and file are made for the user alone, whatever the path looks like, and say whose they are.
func TestNewFile(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"runs.db", "a?mode=memory&b#c%20d ü.db", "file:x.db"} {
		path := filepath.Join(t.TempDir(), "new", "folder", name)
		s := openFile(t, path, historysql.Options{})
		historytest.NewTrace(t, "x").Append(s, "E ExecutionStarted")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" {
			folder, err := os.Stat(filepath.Dir(path))
			if err != nil || info.Mode().Perm() != 0o600 || folder.Mode().Perm() != 0o700 {
				t.Errorf("%s: file %v, folder %v, %v", name, info.Mode(), folder.Mode(), err)
			}
			if log, err := os.Stat(path + "-wal"); err != nil || log.Mode().Perm() != 0o600 {
				t.Errorf("%s: log %v, %v", name, log, err)
			}
		}
		r := &reference{t, plain(t, path)}
		var application, version int
		r.scan("PRAGMA application_id", &application)
		r.scan("PRAGMA user_version", &version)
		if application != historysql.ApplicationID || version != historysql.NewestVersion {
			t.Errorf("%s: application %x, version %d", name, application, version)
		}
		var mode string
		r.scan("PRAGMA journal_mode", &mode)
		if mode != "wal" {
			t.Errorf("%s: journal mode %s", name, mode)
		}
	}
}

// TestManyOpenAtOnce: processes that start together make or migrate one file together.
func TestManyOpenAtOnce(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"new":   filepath.Join(t.TempDir(), "runs.db"),
		"older": load(t, "version1.sql"),
	} {
		t.Run(name, func(t *testing.T) {
			var wg sync.WaitGroup
			for i := range 6 {
				wg.Go(func() {
					s, err := historysql.Open(t.Context(), path, historysql.Options{})
					if err != nil {
						t.Errorf("open %d: %v", i, err)
						return
					}
					historytest.NewTrace(t, fmt.Sprintf("x%d", i)).Append(s, "E ExecutionStarted")
					if err := s.Close(); err != nil {
						t.Errorf("close %d: %v", i, err)
					}
				})
			}
			wg.Wait()
			s := openFile(t, path, historysql.Options{})
			page, err := s.List(t.Context(), history.ListQuery{})
			want := 6
			if name == "older" {
				want += 4
			}
			if err != nil || len(page.Executions) != want {
				t.Errorf("listed %d runs, %v, want %d", len(page.Executions), err, want)
			}
		})
	}
}

// TestKeptFiles opens files of earlier versions, which are never made again, and goes on with their runs. The file of the
// newest version is made with -update, before the migration to the next one is written.
func TestKeptFiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"version1.sql", "version2.sql", "version3.sql", "version4.sql", "version5.sql", "version6.sql", "version7.sql", "version8.sql", "version9.sql", "version10.sql", "version11.sql", "version12.sql", "version13.sql", "version14.sql", "version15.sql"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keep(t, name, aFile)
			path := load(t, name)
			testKeptFile(t, openFile(t, path, historysql.Options{}))
			if page, err := openFile(t, path, historysql.Options{}).List(t.Context(), history.ListQuery{Labels: map[string]string{"kept": "yes"}}); err != nil ||
				len(page.Executions) != 1 != (name != "version13.sql" && name != "version14.sql" && name != "version15.sql") { // the files of earlier versions have no labels
				t.Errorf("with a label: %+v, %v", page, err)
			}
			var unmarked int
			if (&reference{t, plain(t, path)}).scan("SELECT count(*) FROM history WHERE writer IS NULL", &unmarked); unmarked > 0 {
				t.Errorf("%d rows have no writer", unmarked)
			}
		})
	}
}

// keep makes a kept file that is missing.
func keep(t *testing.T, name string, text func(t *testing.T) string) {
	t.Helper()
	golden := filepath.Join("testdata", name)
	if _, err := os.Stat(golden); *update && errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(golden, []byte(text(t)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func testKeptFile(t *testing.T, s *historysql.Store) {
	ctx := t.Context()
	wantPhases(t, s, map[string]history.Phase{
		"v1-done": history.PhaseCompleted, "v1-host": history.PhaseAwaitingActivity, "v1-delegate": history.PhaseAwaitingActivity, "v1-other": history.PhaseRunning,
	})
	e, err := s.Execution(ctx, "v1-host")
	if err != nil {
		t.Fatal(err)
	}
	if want := history.Project("v1-host", mustRead(t, s, "v1-host")); string(e.AppendText(nil)) != string(want.AppendText(nil)) {
		t.Errorf("the projection is\n%s\nthe records fold to\n%s", e.AppendText(nil), want.AppendText(nil))
	}
	if seq, position, err := s.Position(ctx, "v1-host"); seq != 11 || string(position) != "position" || err != nil {
		t.Errorf("position %d %q, %v", seq, position, err)
	}
	if due, err := s.DueTimers(ctx, historytest.Begin, 0); len(due) != 1 || due[0].Key != "t#1" || err != nil {
		t.Errorf("timers %v, %v", due, err)
	}
	if o, err := s.Owner(ctx, "v1-host"); o.Process != "old" || !o.Live() || err != nil {
		t.Errorf("the lease was lost: %+v, %v", o, err)
	}
	if d, err := s.DefinitionByName(ctx, "w", ""); d.Hash != "h" || string(d.Text) != `{"a":1}` || err != nil {
		t.Errorf("definition %+v, %v", d, err)
	}
	x := historytest.NewTrace(t, "v1-host")
	x.Execution = e
	x.Append(s, historytest.Node("t", "u")...)
}

// aFile makes the text of a file with something in every table.
func aFile(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "runs.db")
	s, err := historysql.Open(t.Context(), path, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	historytest.NewTrace(t, "v1-done").Append(s, append(historytest.Start("w", "in_process"), historytest.End()...)...)
	historytest.NewTrace(t, "v1-delegate").Append(s, `E ExecutionStarted {"labels":{"kept":"yes"}}`,
		`E ActivityRequested d {"nodeType":"agent_delegate","agentId":"coder","protocol":"a2a","delegateCorrelationId":"c","delegateInput":{"task":"T"}}`)
	b := historytest.NewTrace(t, "v1-host").Batch(append(historytest.Start("w", "host_mediated"), historytest.Node("begin", "t")...)...)
	b.Position = []byte("position")
	b.SetTimers, b.Timers = true, []history.Timer{{Key: "t#1", Due: historytest.Begin}}
	b.Definition = &history.StoredDefinition{Hash: "h", Name: "w", Version: "1", Text: []byte(`{"a":1}`)}
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	other := historytest.NewTrace(t, "v1-other").Batch("E ExecutionStarted")
	other.Ready = &stepA
	if err := errors.Join(s.Append(t.Context(), other), s.Renew(t.Context(), "kept", time.Hour), s.Describe(t.Context(), "kept", history.About{Work: "all"})); err != nil {
		t.Fatal(err)
	}
	(&reference{t, plain(t, path)}).exec(fmt.Sprintf("INSERT INTO leases VALUES ('v1-host', 'old', %d)", historytest.Begin.AddDate(10, 0, 0).UnixMilli()))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dump(t, path)
}

// TestW48_LookupsUseIndexes: no query of the store walks a table.
func TestW48_LookupsUseIndexes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	openFile(t, path, historysql.Options{})
	conn := plain(t, path)
	plan := func(text string) string {
		rows, err := conn.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		defer rows.Close()
		var out []string
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			out = append(out, detail)
		}
		return strings.Join(out, "\n")
	}
	for name, text := range historysql.Lookups() {
		p := plan(text)
		for line := range strings.Lines(p) {
			if strings.HasPrefix(line, "SCAN") && !strings.Contains(line, "CONSTANT ROW") && !strings.Contains(line, "USING") && !strings.Contains(line, "(subquery") &&
				!strings.HasPrefix(line, "SCAN owners") && !strings.HasPrefix(line, "SCAN lanes") && !strings.HasPrefix(line, "SCAN l VIRTUAL TABLE") && !strings.HasPrefix(line, "SCAN processes") &&
				!strings.HasPrefix(line, "SCAN clocks") && !strings.HasPrefix(line, "SCAN limits") {
				t.Errorf("%s walks a table:\n%s", name, p)
			}
		}
		// Timers of one millisecond are sorted, and so are the few runs without a driver and the first ready runs of each lane. Processes, clocks and limits are few.
		if strings.Contains(p, "TEMP B-TREE") && name != "first ready runs" && name != "oldest ready runs" && name != "due timers" && name != "orphans" && name != "unowned" && name != "changed runs" {
			t.Errorf("%s sorts:\n%s", name, p)
		}
	}
	for _, text := range historysql.ListStatements() {
		p := plan(text)
		for line := range strings.Lines(p) {
			if strings.Contains(line, " executions ") && !strings.Contains(line, "phase=? AND listed_at<?)") && !strings.Contains(line, "phase=? AND listed_at>?)") &&
				!strings.Contains(line, "phase=? AND listed_at>? AND listed_at<?)") {
				t.Errorf("a page does not come from ranges of an index:\n%s\n%s", text, p)
			}
		}
	}
	for _, text := range historysql.LabelStatements() {
		if p := plan(text); !strings.Contains(p, "SEARCH label USING COVERING INDEX run_labels_by_value (name=?") || strings.Contains(p, "SCAN executions") {
			t.Errorf("runs with a label do not come from the index of labels:\n%s\n%s", text, p)
		}
	}
	for _, text := range historysql.CountStatements() {
		if p := plan(text); strings.Count(p, "SEARCH executions USING COVERING INDEX executions_by_") != len(history.OpenPhases()) {
			t.Errorf("a count does not come from ranges of an index:\n%s\n%s", text, p)
		}
	}
	for _, text := range historysql.BelowStatements() {
		if p := plan(text); !strings.Contains(p, "SEARCH executions USING INDEX sqlite_autoindex_executions_1 (execution_id>? AND execution_id<?)") {
			t.Errorf("a page below a run does not come from the range of its ids:\n%s\n%s", text, p)
		}
	}
}

// TestGrowth bounds the bytes that a node of six small records costs, with an id as long as the random ones are. Half
// of them is the contract: each row holds the id twice, its own time and the names of its members.
func TestGrowth(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s, err := historysql.Open(t.Context(), path, historysql.Options{Synchronous: historysql.Normal})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Script("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	empty := fileSize(t, path) // what the tables take before there is anything in them
	const runs, nodes = 6, 40
	for i := range runs {
		x := historytest.NewTrace(t, fmt.Sprintf("%08x-d9cb-469f-a165-70867728950e", uint32(i)*2654435761))
		x.Append(s, historytest.Start("w", "host_mediated")...)
		for range nodes {
			x.Append(s, historytest.Node("n12", "n13")...)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	perNode := (fileSize(t, path) - empty) / (runs * nodes)
	t.Logf("%d bytes per node", perNode)
	if perNode > 1800 {
		t.Errorf("a node costs %d bytes", perNode)
	}
}

func fileSize(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
