package historysql_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// everyOpening are the ways to open a file.
var everyOpening = map[string]historysql.Options{
	"to begin runs": {}, "to continue runs": {Existing: true}, "to read": {ReadOnly: true},
}

// journalOf makes the head of a journal that was not committed, of a file that had that many pages.
func journalOf(pages uint32) []byte {
	head := make([]byte, 512)
	copy(head, "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7")
	for i, n := range []uint32{0, 77, pages, 512, 4096} {
		binary.BigEndian.PutUint32(head[8+4*i:], n)
	}
	return head
}

// TestLostContent: a file that was emptied or is gone, while its log is there, is refused by everybody, and the log, which
// SQLite would delete, is left as it is. With the file back, every step is there.
func TestLostContent(t *testing.T) {
	t.Parallel()
	file, log := someRuns(t)
	for name, c := range map[string]struct {
		gone, link bool
		suffix     string
		log        []byte
		content    string
	}{
		"emptied":                {suffix: "-wal", log: log},
		"emptied by echo":        {suffix: "-wal", log: log, content: "\n"}, // SQLite takes a file of one byte for an empty one
		"emptied behind a link":  {suffix: "-wal", log: log, link: true},
		"gone":                   {suffix: "-wal", log: log, gone: true},
		"emptied with a journal": {suffix: "-journal", log: journalOf(30)},
		"gone with a journal":    {suffix: "-journal", log: journalOf(30), gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "runs.db")
			named := path
			if !c.gone {
				write(t, path, []byte(c.content))
			}
			if c.link {
				named = filepath.Join(t.TempDir(), "link.db")
				if err := os.Symlink(path, named); err != nil {
					t.Skipf("this user may make no symbolic links: %v", err)
				}
			}
			write(t, path+c.suffix, c.log)
			before := beside(t, path)
			for way, o := range everyOpening {
				_, err := historysql.Open(t.Context(), named, o)
				wantRefusal(t, way, err, problem.HistoryCorrupt)
				if p, ok := problem.As(err); !ok || !strings.Contains(p.Hint, "runs.db"+c.suffix) || !strings.Contains(p.Hint, "backup") {
					t.Errorf("%s: the hint is %v", way, err)
				}
			}
			if after := beside(t, path); len(after) != len(before) || after["runs.db"] != before["runs.db"] {
				t.Errorf("there is %v, there was %v", after, before)
			}
			if left, err := os.ReadFile(path + c.suffix); err != nil || !bytes.Equal(left, c.log) {
				t.Errorf("the log was changed, or is gone: %v", err)
			}
			if c.suffix == "-journal" {
				return
			}
			write(t, path, file)
			page, err := openFile(t, named, historysql.Options{Existing: true}).List(t.Context(), history.ListQuery{})
			if err != nil || len(page.Executions) != 8 {
				t.Errorf("with the file back: %d runs, %v", len(page.Executions), err)
			}
		})
	}
}

// TestLostContentOfAnOpenStore: a store whose file is emptied under it makes no connection that would delete the log.
func TestLostContentOfAnOpenStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	x := historytest.NewTrace(t, "x")
	x.Append(s, "E ExecutionStarted")
	log, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Skipf("this system cuts off no file that is open: %v", err)
	}
	if err := s.Script("BEGIN"); err != nil { // after which the connection is given up
		t.Fatal(err)
	}
	b := x.Batch("C ScheduleNode a")
	_ = s.Append(t.Context(), b)
	wantRefusal(t, "append", s.Append(t.Context(), b), problem.HistoryCorrupt)
	if left, err := os.ReadFile(path + "-wal"); err != nil || !bytes.Equal(left, log) {
		t.Errorf("the log was changed, or is gone: %v", err)
	}
}

// TestEmptyFile: a file without content and without a log is filled by what begins runs, and refused by everything else
// without being written to, be it of no bytes or what a process leaves that is killed while it makes one.
func TestEmptyFile(t *testing.T) {
	t.Parallel()
	blank := func(t *testing.T, path string) {
		r := &reference{t, plain(t, path)}
		r.exec("PRAGMA journal_mode = WAL")
		_ = r.conn.Close()
	}
	for name, prepare := range map[string]func(t *testing.T, path string){
		"no bytes":  func(t *testing.T, path string) { write(t, path, nil) },
		"no tables": blank,
		"a journal of its first transaction": func(t *testing.T, path string) {
			write(t, path, nil)
			write(t, path+"-journal", journalOf(0))
		},
		"an empty log": func(t *testing.T, path string) {
			write(t, path, nil)
			write(t, path+"-wal", nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "runs.db")
			prepare(t, path)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for way, o := range everyOpening {
				if !o.Existing && !o.ReadOnly {
					continue
				}
				_, err := historysql.Open(t.Context(), path, o)
				wantRefusal(t, way, err, problem.HistoryCorrupt)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file was changed: %v", err)
			}
			s := openFile(t, path, historysql.Options{})
			historytest.NewTrace(t, "x").Append(s, "E ExecutionStarted")
			if rs := mustRead(t, openFile(t, path, historysql.Options{ReadOnly: true}), "x"); len(rs) != 1 {
				t.Errorf("%d records", len(rs))
			}
		})
	}
}

// TestFileInTheMaking: who opens a file to read it, or to go on, while another process is making it, gets it. The bubble's
// clock stands still as long as that one is at it.
func TestFileInTheMaking(t *testing.T) {
	t.Parallel()
	for way, o := range everyOpening {
		path := filepath.Join(t.TempDir(), "runs.db")
		write(t, path, nil)
		synctest.Test(t, func(t *testing.T) {
			var wg sync.WaitGroup
			wg.Go(func() {
				s, err := historysql.Open(t.Context(), path, o)
				if err == nil {
					err = s.Close()
				}
				if err != nil {
					t.Errorf("%s: %v", way, err)
				}
			})
			synctest.Wait() // it has looked, and waits
			openFile(t, path, historysql.Options{})
			wg.Wait()
		})
	}
}

// TestExisting: a file that has to be there is not made.
func TestExisting(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "runs.db")
	_, err := historysql.Open(t.Context(), path, historysql.Options{Existing: true})
	wantRefusal(t, "open", err, problem.StoreUnavailable)
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("the folder was made")
	}
}

// TestReadingLockedFile: a file that another program keeps to itself while it changes it is not read in the middle of that,
// log or no log.
func TestReadingLockedFile(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"delete", "wal"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			path := atRest(t)
			other := &reference{t, plain(t, path)}
			other.exec("PRAGMA locking_mode = EXCLUSIVE")
			other.exec("PRAGMA journal_mode = " + mode)
			other.exec("PRAGMA cache_size = 1") // so that changes are in the file before they are committed
			other.exec("BEGIN EXCLUSIVE")
			other.exec("UPDATE executions SET phase = 'failed', projection = '{}'")
			o := historysql.Options{ReadOnly: true, BusyTimeout: 10 * time.Millisecond}
			_, err := historysql.Open(t.Context(), path, o)
			wantRefusal(t, "open", err, problem.StoreLocked)
			other.exec("ROLLBACK")
			if mode == "wal" {
				return // it is given back when the connection is closed
			}
			other.exec("PRAGMA locking_mode = NORMAL")
			var phase string
			other.scan("SELECT phase FROM executions", &phase) // which gives the lock back
			e, err := openFile(t, path, o).Execution(t.Context(), "x")
			if err != nil || e.Phase != history.PhaseRunning {
				t.Errorf("given back: %v, %v", e.Phase, err)
			}
		})
	}
}

// TestReadOnlyHotJournal: a transaction that was cut off is not read as if it had ended where it cannot be undone.
func TestReadOnlyHotJournal(t *testing.T) {
	t.Parallel()
	path := atRest(t)
	write(t, path+"-journal", journalOf(30))
	_, err := historysql.Open(t.Context(), path, historysql.Options{ReadOnly: true})
	if p, ok := problem.As(err); !ok || p.Code != problem.StoreReadOnly || !strings.Contains(p.Hint, "-journal") {
		t.Errorf("got %v", err)
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
