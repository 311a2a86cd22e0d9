package historysql_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// olderFiles are files of every version that is migrated.
var olderFiles = map[string]int{
	"version1.sql": 1, "version2.sql": 2, "version3.sql": 3, "version4.sql": 4, "version5.sql": 5, "version6.sql": 6, "version7.sql": 7, "version8.sql": 8, "version9.sql": 9, "version10.sql": 10, "version11.sql": 11, "version12.sql": 12, "version13.sql": 13, "version14.sql": 14, "version15.sql": 15,
}

// atRestOf makes one of them that nobody has open.
func atRestOf(t *testing.T, name string) string {
	t.Helper()
	path := load(t, name)
	rest := filepath.Join(t.TempDir(), "runs.db")
	r := &reference{t, plain(t, path)}
	r.exec("VACUUM INTO '" + rest + "'")
	s := &reference{t, plain(t, rest)}
	s.exec("PRAGMA journal_mode = WAL")
	if err := s.conn.Close(); err != nil {
		t.Fatal(err)
	}
	return rest
}

// folderOf is everything in the folder of a file: names, and hashes of contents.
func folderOf(t *testing.T, path string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(filepath.Dir(path), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %x", e.Name(), sha256.Sum256(content)))
	}
	return out
}

// readAll makes the calls of the commands that only read.
func readAll(t *testing.T, s *historysql.Store) int {
	t.Helper()
	ctx := t.Context()
	page, err := s.List(ctx, history.ListQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Executions {
		if got, err := s.Execution(ctx, e.ID); err != nil || got.Phase != e.Phase {
			t.Errorf("%s: %v, %v", e.ID, got.Phase, err)
		}
		if records, err := s.Read(ctx, e.ID, 1, 0); err != nil || len(records) == 0 {
			t.Errorf("%s: %d records, %v", e.ID, len(records), err)
		}
		if _, err := s.Owner(ctx, e.ID); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Unowned(ctx, 0); err != nil {
		t.Error(err)
	}
	if _, err := s.Verify(ctx, "", false, func(f history.Finding) {
		if f.Code != problem.DefinitionHashMismatch { // of the definition "h", which was made for tests
			t.Errorf("%+v", f)
		}
	}); err != nil {
		t.Error(err)
	}
	return len(page.Executions)
}

// TestReadingLeavesAnOlderFileAlone: a file of an older version is read as it is, and neither it
// nor its folder is changed.
func TestReadingLeavesAnOlderFileAlone(t *testing.T) {
	for name, version := range olderFiles {
		t.Run(name, func(t *testing.T) {
			path, temporary := atRestOf(t, name), t.TempDir()
			t.Setenv("TMPDIR", temporary)
			before := folderOf(t, path)
			inspected, err := historysql.Inspect(t.Context(), path, historysql.Options{})
			if err != nil {
				t.Fatal(err)
			}
			s, err := historysql.Open(t.Context(), path, historysql.Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			runs := readAll(t, s)
			if m := s.Migration(); m.From != version || m.To != historysql.NewestVersion || m.Backup != "" {
				t.Errorf("got %+v", m)
			}
			if err := s.Append(t.Context(), historytest.NewTrace(t, "z").Batch("E ExecutionStarted")); !errors.Is(err, problem.StoreReadOnly) {
				t.Errorf("append: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if after := folderOf(t, path); !slices.Equal(before, after) {
				t.Errorf("before: %s\nafter: %s", before, after)
			}
			if left, _ := os.ReadDir(temporary); len(left) > 0 {
				t.Errorf("the copy was left: %v", left)
			}
			want := historysql.Migration{From: version, To: historysql.NewestVersion, Runs: int64(runs), Bytes: fileSize(t, path)}
			if inspected != want || runs == 0 {
				t.Errorf("inspected %+v, want %+v", inspected, want)
			}
		})
	}
}

// TestReadingAnOlderFileInUse: what stands in the WAL of a process of an older version is read too.
func TestReadingAnOlderFileInUse(t *testing.T) {
	t.Parallel()
	path := load(t, "version4.sql")
	old := &reference{t, plain(t, path)}
	old.exec("UPDATE executions SET driven = 0 WHERE execution_id = 'v1-other'")
	old.append("fresh", "E ExecutionStarted")
	before := folderOf(t, path)
	s := openFile(t, path, historysql.Options{ReadOnly: true})
	if e, err := s.Execution(t.Context(), "fresh"); err != nil || e.Seq != 1 {
		t.Errorf("got %+v, %v", e, err)
	}
	readAll(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	named := func(lines []string) []string { // the shared-memory file holds the readers' marks
		return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.HasPrefix(l, "runs.db-shm ") })
	}
	if after := folderOf(t, path); !slices.Equal(named(before), named(after)) {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
}

// TestReadingAnOlderFileInAFolderThatCannotBeWrittenTo, as on a read-only medium.
func TestReadingAnOlderFileInAFolderThatCannotBeWrittenTo(t *testing.T) {
	t.Parallel()
	for name := range olderFiles {
		path := atRestOf(t, name)
		before := folderOf(t, path)
		if err := errors.Join(os.Chmod(path, 0o400), os.Chmod(filepath.Dir(path), 0o500)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(filepath.Dir(path), 0o700) })
		asOrdinaryUser(t, filepath.Dir(path), func() {
			s, err := historysql.Open(t.Context(), path, historysql.Options{ReadOnly: true})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			if page, err := s.List(t.Context(), history.ListQuery{}); err != nil || len(page.Executions) == 0 {
				t.Errorf("%s: %d runs, %v", name, len(page.Executions), err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		if after := folderOf(t, path); !slices.Equal(before, after) {
			t.Errorf("%s: before: %s\nafter: %s", name, before, after)
		}
	}
}

// backups are the names of the copies beside a file.
func backups(t *testing.T, path string) []string {
	t.Helper()
	found, err := filepath.Glob(path + ".v*")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(found, func(name string) bool { // of connections of the test
		return strings.HasSuffix(name, "-wal") || strings.HasSuffix(name, "-shm")
	})
}

// TestMigrationKeepsACopy: the first writer keeps the file as it was, an older version can go on with the copy, and nothing
// that is there is overwritten.
func TestMigrationKeepsACopy(t *testing.T) {
	t.Parallel()
	for name, version := range olderFiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, same := atRestOf(t, name), filepath.Join(t.TempDir(), "runs.db")
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, same, content)
			want := dump(t, same)
			for i := range 3 { // somebody restores the file, and migrates it again
				write(t, path, content)
				write(t, path+".v1-old.bak.partial", nil) // of a process that was killed
				s, err := historysql.Open(t.Context(), path, historysql.Options{Existing: true})
				if err != nil {
					t.Fatal(err)
				}
				m := s.Migration()
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				pattern := fmt.Sprintf(`^runs\.db\.v%d-\d{8}T\d{4}(-\d)?\.bak$`, version) // those of one minute are numbered
				if !regexp.MustCompile(pattern).MatchString(filepath.Base(m.Backup)) || m.From != version || m.To != historysql.NewestVersion {
					t.Errorf("got %+v", m)
				}
				if found := backups(t, path); len(found) != i+1 || !slices.Contains(found, m.Backup) {
					t.Errorf("%d: the copies are %v", i, found)
				}
				info, err := os.Stat(m.Backup)
				if err != nil || info.Mode().Perm() != 0o600 && os.PathSeparator == '/' {
					t.Errorf("got %v, %v", info, err)
				}
				again := openFile(t, path, historysql.Options{})
				if m := again.Migration(); m.From != m.To || m.Backup != "" {
					t.Errorf("migrated again: %+v", m)
				}
				if err := again.Close(); err != nil {
					t.Fatal(err)
				}
				if got := dump(t, m.Backup); got != want {
					t.Errorf("the copy holds\n%s\nwant\n%s", got, want)
				}
			}
		})
	}
	none := atRestOf(t, "version4.sql")
	openFile(t, none, historysql.Options{NoBackup: true})
	openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	if found := backups(t, none); len(found) > 0 {
		t.Errorf("copies that nobody wants: %v", found)
	}
}

// TestTwoMigrateAtOnce: processes that start at once make one copy and one migration.
func TestTwoMigrateAtOnce(t *testing.T) {
	t.Parallel()
	for name := range olderFiles {
		path := atRestOf(t, name)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var copies []string
		for range 6 {
			wg.Go(func() {
				s, err := historysql.Open(t.Context(), path, historysql.Options{})
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if m := s.Migration(); m.Backup != "" {
					copies = append(copies, m.Backup)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if found := backups(t, path); len(found) != 1 || !slices.Equal(copies, found) {
			t.Errorf("%s: told of %v, found %v", name, copies, found)
		}
	}
}

// TestWaitingForAMigration: while another process makes its copy, one that starts waits for longer than for other locks.
func TestWaitingForAMigration(t *testing.T) {
	t.Parallel()
	path := atRestOf(t, "version4.sql")
	other := &reference{t, plain(t, path)}
	other.exec("BEGIN IMMEDIATE")
	o := historysql.Options{BusyTimeout: 10 * time.Millisecond}
	_, err := historysql.Open(t.Context(), path, o)
	wantRefusal(t, "locked by nobody who migrates", err, problem.StoreLocked)
	write(t, path+".v4-20261122T2209.bak.partial", nil)
	time.AfterFunc(300*time.Millisecond, func() { other.exec("ROLLBACK") })
	s, err := historysql.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestNoPlaceForTheCopy: the file is left as it was, and the refusal names the way out.
func TestNoPlaceForTheCopy(t *testing.T) {
	t.Parallel()
	path := atRestOf(t, "version4.sql")
	// A WAL that stays, so that a folder that cannot be written to does not keep SQLite from writing.
	old := &reference{t, plain(t, path)}
	old.append("fresh", "E ExecutionStarted")
	dir := filepath.Dir(path)
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	asOrdinaryUser(t, dir, func() {
		_, err := historysql.Open(t.Context(), path, historysql.Options{})
		p, ok := problem.As(err)
		if !ok || p.Code != problem.StoreReadOnly || !strings.Contains(p.Hint, "NoBackup") || !strings.Contains(p.Message, "copy") {
			t.Errorf("got %v, %+v", err, p)
		}
	})
	var version int
	if old.scan("PRAGMA user_version", &version); version != 4 {
		t.Errorf("version %d", version)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed, %v", err)
	}
	asOrdinaryUser(t, dir, func() {
		s, err := historysql.Open(t.Context(), path, historysql.Options{NoBackup: true})
		if err != nil {
			t.Error(err)
			return
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// migratedFile makes the test binary migrate this file; see migrateAndExit.
const migratedFile = "HISTORYSQL_TEST_MIGRATED"

func migrateAndExit(path string) {
	fmt.Println("begins")
	s, err := historysql.Open(context.Background(), path, historysql.Options{})
	if err == nil {
		err = s.Close()
	}
	fmt.Println("migrated", err)
}

// TestKilledInAMigration: wherever a process is killed, the file is the old one or the new one, a copy under its name is
// complete, and the next migration removes one that is not.
func TestKilledInAMigration(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short leaves out what starts processes")
	}
	rest := atRestOf(t, "version1.sql")
	big := &reference{t, plain(t, rest)}
	big.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
		INSERT INTO executions (execution_id, seq, phase, definition_name, created_at, updated_at, driven, projection)
		SELECT 'big' || i, 1, 'running', 'w', 1, 1, 0, printf('{"seq":1,"filler":"%.2000c"}', 'x') FROM n`)
	var contents [2][]byte
	for i, mode := range []string{"WAL", "DELETE"} {
		big.exec("PRAGMA journal_mode = " + mode)
		big.exec("PRAGMA wal_checkpoint(TRUNCATE)")
		var err error
		if contents[i], err = os.ReadFile(rest); err != nil {
			t.Fatal(err)
		}
	}
	_ = big.conn.Close()
	seen := map[string]int{}
	var whole time.Duration // what a migration takes that is not killed, which is the first one
	const rounds = 9
	for round := range rounds {
		path := filepath.Join(t.TempDir(), "runs.db")
		write(t, path, contents[round%2])
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), migratedFile+"="+path)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		said := bufio.NewReader(out)
		if _, err := said.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if round > 0 {
			time.Sleep(whole * time.Duration(round) / rounds)
			_ = cmd.Process.Kill() // it may have ended
		}
		_, _ = io.Copy(io.Discard, said)
		_ = cmd.Wait()
		whole = max(whole, time.Since(begun))
		complete, partial := 0, 0
		for _, name := range backups(t, path) {
			if strings.HasSuffix(name, ".partial") {
				partial++
				continue
			}
			if strings.HasSuffix(name, ".bak") {
				complete++
				r := &reference{t, plain(t, name)}
				var check string
				var version, rows int
				r.scan("PRAGMA integrity_check", &check)
				r.scan("PRAGMA user_version", &version)
				r.scan("SELECT count(*) FROM executions", &rows)
				if check != "ok" || version != 1 || rows < 2000 {
					t.Errorf("round %d: the copy is %s, of version %d with %d runs", round, check, version, rows)
				}
				_ = r.conn.Close()
			}
		}
		m, err := historysql.Inspect(t.Context(), path, historysql.Options{})
		if errors.Is(err, problem.StoreReadOnly) { // half of a transaction, which only a writer undoes
			m, err = historysql.Migration{From: 1, To: historysql.NewestVersion}, nil
			seen["hot journal"]++
		}
		if err != nil || m.From != 1 && m.From != m.To || round == 0 && m.From != m.To {
			t.Fatalf("round %d: %+v, %v", round, m, err)
		}
		seen[fmt.Sprintf("version %d, copies %d, partial %d", m.From, complete, partial)]++
		if m.From == m.To && complete != 1 {
			t.Errorf("round %d: migrated, with %d copies", round, complete)
		}
		s := openFile(t, path, historysql.Options{})
		if e, err := s.Execution(t.Context(), "v1-done"); err != nil || e.Phase != history.PhaseCompleted {
			t.Errorf("round %d: %v, %v", round, e.Phase, err)
		}
		for _, name := range backups(t, path) {
			if m.From != m.To && strings.HasSuffix(name, ".partial") {
				t.Errorf("round %d: %s was left", round, name)
			}
		}
	}
	t.Log(seen)
}

// TestMigrationMarksRetriedRuns: what was retried with success before the file knew marks is handled, the retries in between and beside it too.
func TestMigrationMarksRetriedRuns(t *testing.T) {
	t.Parallel()
	path := load(t, "version11.sql")
	r := &reference{t, plain(t, path)}
	for i, id := range []string{"failed", "again", "beside", "other"} {
		r.exec(fmt.Sprintf(`INSERT INTO executions (run, execution_id, seq, phase, definition_name, created_at, updated_at, listed_at, driven, projection, bytes)
			VALUES (%d, '%s', 1, 'failed', '', 0, 0, 0, 0, '{"seq":1}', 0)`, 100+i, id))
	}
	r.exec("INSERT INTO run_links (to_id, from_id, kind, seq, at) VALUES ('again', 'failed', 'retry', 1, 0), ('beside', 'failed', 'retry', 1, 0), ('v1-done', 'again', 'retry', 1, 1), ('v1-host', 'other', 'retry', 1, 2)")
	s := openFile(t, path, historysql.Options{})
	marks, err := s.Handled(t.Context(), "failed", "again", "beside", "other", "v1-done")
	if err != nil || len(marks) != 3 || marks["beside"].Retry != "v1-done" || marks["failed"].Retry != "v1-done" || marks["again"].Retry != "v1-done" || marks["failed"].At.IsZero() {
		t.Errorf("%+v, %v", marks, err)
	}
}
