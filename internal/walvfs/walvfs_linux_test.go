//go:build linux && (amd64 || arm64)

package walvfs

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	_ "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// probe is a file system behind the one that is tested. It notes what is asked of the log, and can fail.
type probe struct {
	name   string
	base   uintptr
	writes []int
	synced []int // the number of writes by then
	fail   func(write bool) int32
	// zeros are the writes that only make the log longer, which are not among the others; full makes them fail.
	zeros []int
	full  bool
}

var (
	probed  sync.Map // the address of a file system, or of an open log: *probe
	methods sync.Map // the address of an open log: that of its methods before
)

func newProbe(t *testing.T) *probe {
	t.Helper()
	tls := libc.NewTLS()
	p := &probe{name: fmt.Sprintf("probe-%d", registered.Add(1)), base: sqlite3.Xsqlite3_vfs_find(tls, 0)}
	name, err := libc.CString(p.name)
	if err != nil {
		t.Fatal(err)
	}
	own := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})))
	v := at[sqlite3.Tsqlite3_vfs](own)
	*v = behind(at[sqlite3.Tsqlite3_vfs](p.base))
	v.FzName, v.FxOpen = name, address(probeOpen)
	probed.Store(own, p)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, own, 0); rc != 0 {
		t.Fatal(rc)
	}
	t.Cleanup(func() {
		sqlite3.Xsqlite3_vfs_unregister(tls, own)
		probed.Delete(own)
		libc.Xfree(tls, own)
		libc.Xfree(tls, name)
		tls.Close()
	})
	return p
}

func probeOf(address uintptr) *probe {
	p, _ := probed.Load(address)
	return p.(*probe)
}

func probeOpen(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32 {
	p := probeOf(vfs)
	rc := call[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](at[sqlite3.Tsqlite3_vfs](p.base).FxOpen)(
		tls, p.base, name, file, flags, outFlags)
	if rc != 0 || flags&sqlite3.SQLITE_OPEN_WAL == 0 {
		return rc
	}
	own := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_io_methods{})))
	f, m := at[sqlite3.Tsqlite3_file](file), at[sqlite3.Tsqlite3_io_methods](own)
	*m = *at[sqlite3.Tsqlite3_io_methods](f.FpMethods)
	methods.Store(file, f.FpMethods)
	probed.Store(file, p)
	m.FxWrite, m.FxSync, m.FxClose = address(probeWrite), address(probeSync), address(probeClose)
	f.FpMethods = own
	return rc
}

func baseOf(file uintptr) *sqlite3.Tsqlite3_io_methods {
	m, _ := methods.Load(file)
	return at[sqlite3.Tsqlite3_io_methods](m.(uintptr))
}

func probeWrite(tls *libc.TLS, file, from uintptr, n int32, offset int64) int32 {
	p := probeOf(file)
	write := call[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](baseOf(file).FxWrite)
	switch data := unsafe.Slice(at[byte](from), int(n)); {
	case len(bytes.Trim(data, "\x00")) > 0:
		if p.fail != nil {
			if rc := p.fail(true); rc != 0 {
				return rc
			}
		}
		p.writes = append(p.writes, int(n))
	case p.full:
		write(tls, file, from, n/2, offset) // SQLite's own file system writes what there is space for
		return sqlite3.SQLITE_FULL
	default:
		p.zeros = append(p.zeros, int(n))
	}
	return write(tls, file, from, n, offset)
}

func probeSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	p := probeOf(file)
	if p.fail != nil {
		if rc := p.fail(false); rc != 0 {
			return rc
		}
	}
	p.synced = append(p.synced, len(p.writes))
	return call[func(*libc.TLS, uintptr, int32) int32](baseOf(file).FxSync)(tls, file, flags)
}

func probeClose(tls *libc.TLS, file uintptr) int32 {
	m, _ := methods.LoadAndDelete(file)
	probed.Delete(file)
	f := at[sqlite3.Tsqlite3_file](file)
	own := f.FpMethods
	f.FpMethods = m.(uintptr)
	rc := call[func(*libc.TLS, uintptr) int32](at[sqlite3.Tsqlite3_io_methods](m.(uintptr)).FxClose)(tls, file)
	libc.Xfree(tls, own)
	return rc
}

// side is a connection to a database.
type side struct {
	t   *testing.T
	c   *sql.Conn
	vfs *VFS // nil for SQLite's own
}

func open2(t *testing.T, path, parameters string, v *VFS) *side {
	t.Helper()
	if v != nil {
		parameters += "&vfs=" + v.Name()
	}
	db, err := sql.Open("sqlite", "file:"+path+"?"+parameters)
	if err != nil {
		t.Fatal(err)
	}
	c, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return &side{t, c, v}
}

func gathering(t *testing.T, base string) *VFS {
	t.Helper()
	v, err := newBefore(base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

func (s *side) try(text string, args ...any) error {
	_, err := s.c.ExecContext(context.Background(), text, args...)
	return err
}

func (s *side) exec(text string, args ...any) {
	s.t.Helper()
	if err := s.try(text, args...); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
}

func (s *side) commit() error {
	if s.vfs != nil {
		s.vfs.Gather()
		defer s.vfs.Release()
	}
	return s.try("COMMIT")
}

func (s *side) text(query string) (out string) {
	s.t.Helper()
	if err := s.c.QueryRowContext(context.Background(), query).Scan(&out); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return out
}

const (
	wal      = "_pragma=journal_mode(wal)&_pragma=busy_timeout(0)"
	createT  = "CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB)"
	insertT  = "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n) INSERT INTO t (v) "
	contentT = "SELECT count(*) || ' ' || ifnull(sum(k), 0) || ' ' || ifnull(sum(length(v)), 0) FROM t"
)

// watched is a connection that gathers, over a probe, to a new database with a table.
func watched(t *testing.T) (*side, *probe, string) {
	t.Helper()
	p := newProbe(t)
	path := filepath.Join(t.TempDir(), "a.db")
	s := open2(t, path, wal+"&_pragma=synchronous(full)", gathering(t, p.name))
	s.exec(createT)
	return s, p, path
}

func TestACommitIsAFewWrites(t *testing.T) {
	t.Parallel()
	s, p, _ := watched(t)
	for _, rows := range []int{1, 10, 100, 300} {
		s.exec("BEGIN IMMEDIATE")
		s.exec(insertT+"SELECT randomblob(3000) FROM n LIMIT ?", rows)
		p.writes, p.synced = nil, nil
		if err := s.commit(); err != nil {
			t.Fatal(err)
		}
		bytes := 0
		for _, n := range p.writes {
			bytes += n
		}
		if most := bytes/(bufferSize-2*4120) + 2; len(p.writes) > most || bytes < rows*3000 {
			t.Errorf("%d rows: %d bytes in %d writes, want at most %d", rows, bytes, len(p.writes), most)
		}
		if n := len(p.synced); n == 0 || p.synced[n-1] != len(p.writes) {
			t.Errorf("%d rows: flushed after %v of %d writes", rows, p.synced, len(p.writes))
		}
	}
	if got := s.text("PRAGMA integrity_check"); got != "ok" {
		t.Error(got)
	}
}

// insert commits one row.
func (s *side) insert(size int) {
	s.t.Helper()
	s.exec("BEGIN IMMEDIATE")
	s.exec("INSERT INTO t (v) VALUES (randomblob(?))", size)
	if err := s.commit(); err != nil {
		s.t.Fatal(err)
	}
}

func logSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// The log becomes longer in a few steps, also one that somebody else has emptied, and what follows the last commit is
// nothing to those who read it.
func TestTheLogGrowsInSteps(t *testing.T) {
	t.Parallel()
	s, p, path := watched(t)
	s.exec("PRAGMA wal_autocheckpoint = 0")
	other := open2(t, path, wal, nil)
	const commits = 200
	for _, name := range []string{"new", "emptied"} {
		grown := 0
		for last, n := logSize(t, path), 0; n < commits; n++ {
			s.insert(4000)
			switch size := logSize(t, path); {
			case size > last:
				grown++
				if step := size - last; step > maxStep+4*4120 {
					t.Errorf("%s, commit %d: the log has grown by %d bytes", name, n, step)
				}
				if got, want := recovered(t, path), s.text(contentT); got != want {
					t.Fatalf("%s, commit %d: after a crash there was %s, want %s", name, n, got, want)
				}
				last = size
			case size < last:
				t.Fatalf("%s, commit %d: the log has shrunk from %d bytes to %d", name, n, last, size)
			}
		}
		if bytes := logSize(t, path); grown < 3 || grown > 12 || bytes < commits*4000 || bytes > commits*3*4120+maxStep {
			t.Errorf("%s: %d commits made the log grow %d times, to %d bytes", name, commits, grown, bytes)
		}
		other.exec("INSERT INTO t (v) VALUES (1)")
		if got, want := s.text(contentT), other.text(contentT); got != want {
			t.Errorf("%s: it sees %s, want %s", name, got, want)
		}
		other.exec("PRAGMA wal_checkpoint(truncate)")
		if size := logSize(t, path); size != 0 {
			t.Fatalf("%s: %d bytes are left", name, size)
		}
	}
	if len(p.zeros) == 0 {
		t.Error("there were no zeros")
	}
}

// A disk that is too full for more than the commit itself does not fail the commit, and is not filled for nothing.
func TestALogThatCannotGrowIsAsLongAsItHasToBe(t *testing.T) {
	t.Parallel()
	s, p, path := watched(t)
	s.exec("PRAGMA wal_checkpoint(truncate)")
	p.full = true
	for n := range 5 {
		s.insert(10)
		if got, want := logSize(t, path), int64(32+(n+1)*(frameHeader+4096)); got != want {
			t.Errorf("after %d commits the log has %d bytes, want %d", n+1, got, want)
		}
	}
	if got, want := recovered(t, path), s.text(contentT); got != want {
		t.Errorf("after a crash there was %s, want %s", got, want)
	}
}

// A write or flush of the log fails, each in turn. Another connection then writes what stands in the same place of the
// log, and must not find it overwritten by what the failed commit has left.
func TestWhatAFailedCommitLeavesIsForgotten(t *testing.T) {
	t.Parallel()
	s, p, path := watched(t)
	other := open2(t, path, wal, nil)
	failed := 0
	for _, rows := range []int{1, 40, 100} {
		for k := 0; ; k++ {
			n, hit := 0, false
			s.exec("BEGIN IMMEDIATE")
			s.exec(insertT+"SELECT randomblob(3000) FROM n LIMIT ?", rows)
			before := other.text(contentT)
			p.fail = func(write bool) int32 {
				n++
				if n-1 != k {
					return 0
				}
				hit = true
				if write {
					return sqlite3.SQLITE_FULL
				}
				return sqlite3.SQLITE_IOERR_FSYNC
			}
			err := s.commit()
			p.fail = nil
			if (err != nil) != hit {
				t.Fatalf("%d rows, operation %d: failed %t, and the commit said %v", rows, k, hit, err)
			}
			if !hit {
				break
			}
			failed++
			_ = s.try("ROLLBACK") // SQLite has done it itself after some errors
			if got := other.text(contentT); got != before {
				t.Fatalf("%d rows, operation %d: another connection sees %s, want %s", rows, k, got, before)
			}
			other.exec(insertT + "SELECT randomblob(2000) FROM n LIMIT 15")
			if want, got := other.text(contentT), s.text(contentT); got != want {
				t.Fatalf("%d rows, operation %d: it sees %s, want %s", rows, k, got, want)
			}
		}
	}
	if failed < 6 {
		t.Errorf("%d operations failed", failed)
	}
	fresh := open2(t, path, wal, nil)
	if got := fresh.text("PRAGMA integrity_check"); got != "ok" {
		t.Error(got)
	}
	if got, want := fresh.text(contentT), other.text(contentT); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Two connections at random, one of them with a cache so small that pages are written before the commit and again with it:
// what is committed is seen by the other at once, and nothing else.
func TestRandomTransactions(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			path := filepath.Join(t.TempDir(), "a.db")
			parameters := wal + "&_pragma=synchronous(" + []string{"full", "normal", "off"}[seed%3] + ")"
			if seed%2 == 0 {
				parameters += "&_pragma=cache_size(8)"
			}
			s := open2(t, path, parameters+fmt.Sprintf("&_pragma=wal_autocheckpoint(%d)", 1+r.IntN(200)), gathering(t, ""))
			s.exec(createT)
			sides := []*side{s, open2(t, path, parameters, nil)}
			if seed%4 > 1 {
				sides[1] = open2(t, path, parameters, gathering(t, ""))
			}
			change := func(s *side) {
				switch r.IntN(3) {
				case 0:
					s.exec(insertT+"SELECT randomblob(1 + abs(random() % 5000)) FROM n LIMIT ?", 1+r.IntN(30))
				case 1:
					s.exec("UPDATE t SET v = randomblob(1 + abs(random() % 3000)) WHERE k % ? = 0", 2+r.IntN(9))
				case 2:
					s.exec("DELETE FROM t WHERE k % ? = 1", 2+r.IntN(9))
				}
			}
			for range 20 {
				i := r.IntN(2)
				s, other := sides[i], sides[1-i]
				before := other.text(contentT)
				s.exec("BEGIN IMMEDIATE")
				for range 1 + r.IntN(4) {
					change(s)
					if r.IntN(3) == 0 {
						s.exec("SAVEPOINT p")
						change(s)
						s.exec([]string{"ROLLBACK TO p", "RELEASE p"}[r.IntN(2)])
					}
				}
				want := s.text(contentT)
				if r.IntN(4) == 0 {
					s.exec("ROLLBACK")
					want = before
				} else if err := s.commit(); err != nil {
					t.Fatal(err)
				}
				if got := other.text(contentT); got != want {
					t.Fatalf("the other sees %s, want %s", got, want)
				}
				if got := recovered(t, path); got != want {
					t.Fatalf("after a crash there was %s, want %s", got, want)
				}
				if r.IntN(10) == 0 {
					_ = other.try("PRAGMA wal_checkpoint(" + []string{"passive", "truncate", "restart"}[r.IntN(3)] + ")")
				}
			}
			fresh := open2(t, path, wal, nil)
			if got := fresh.text("PRAGMA integrity_check"); got != "ok" {
				t.Error(got)
			}
		})
	}
}

// recovered is what SQLite finds in a database whose processes have all been killed.
func recovered(t *testing.T, path string) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(copied+suffix, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", copied)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var content string
	if err := db.QueryRow(contentT).Scan(&content); err != nil {
		t.Fatal(err)
	}
	return content
}

// A log that begins anew has its header flushed before anything stands behind it.
func TestHeaderIsFlushedFirst(t *testing.T) {
	t.Parallel()
	s, p, _ := watched(t)
	s.exec("PRAGMA wal_checkpoint(restart)")
	s.exec("BEGIN IMMEDIATE")
	s.exec("INSERT INTO t (v) VALUES (1)")
	p.writes, p.synced = nil, nil
	if err := s.commit(); err != nil {
		t.Fatal(err)
	}
	if want := []int{1, 2}; len(p.writes) != 2 || p.writes[0] != 32 || !slices.Equal(p.synced, want) {
		t.Errorf("writes of %d bytes, flushed after %d, want the header's 32 and the rest, each flushed", p.writes, p.synced)
	}
}

func TestOtherFilesAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := open2(t, filepath.Join(t.TempDir(), "a.db"), "_pragma=journal_mode(delete)", gathering(t, ""))
	s.exec(createT)
	s.exec("BEGIN IMMEDIATE")
	s.exec(insertT + "SELECT randomblob(3000) FROM n LIMIT 100")
	if err := s.commit(); err != nil {
		t.Fatal(err)
	}
	s.exec("PRAGMA journal_mode = wal")
	s.exec("BEGIN IMMEDIATE")
	s.exec("DELETE FROM t WHERE k > 7")
	if err := s.commit(); err != nil {
		t.Fatal(err)
	}
	s.exec("PRAGMA journal_mode = delete")
	if got := s.text("SELECT count(*) || (SELECT integrity_check FROM pragma_integrity_check) FROM t"); got != "7ok" {
		t.Error(got)
	}
}

func TestClosedFileSystemIsGone(t *testing.T) {
	t.Parallel()
	v, err := New()
	if err != nil {
		t.Fatal(err)
	}
	name := v.Name()
	v.Close()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "a.db")+"?vfs="+name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.Ping(); err == nil || !strings.Contains(err.Error(), "no such vfs") {
		t.Error(err)
	}
}

// File systems come and go at the same time: SQLite links them into one list, of which each is made from the first.
func TestFileSystemsComeAndGoAtOnce(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				v, err := New()
				if err != nil {
					t.Error(err)
					return
				}
				v.Close()
			}
		})
	}
	all.Wait()
}

func TestNoSuchBase(t *testing.T) {
	t.Parallel()
	if _, err := newBefore("nobody"); err == nil || !strings.Contains(err.Error(), "there is none") {
		t.Error(err)
	}
}

// The translated SQLite works with the version of its C library that it was translated for, and with no other.
func TestLibraryIsTheOneThatSQLiteAsksFor(t *testing.T) {
	t.Parallel()
	list := func(args ...string) string {
		out, err := exec.Command("go", append([]string{"list", "-m"}, args...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	mod := list("-f", "{{.GoMod}}", "modernc.org/sqlite")
	required, err := exec.Command("go", "mod", "edit", "-print", mod).Output()
	if err != nil {
		t.Fatal(err)
	}
	if used := list("modernc.org/libc"); !strings.Contains(string(required), used+"\n") {
		t.Errorf("%s is used; modernc.org/sqlite asks for another version:\n%s", used, required)
	}
}

func BenchmarkCommit(b *testing.B) {
	for _, pages := range []int{2, 8, 64} {
		for _, gathers := range []bool{false, true} {
			b.Run(fmt.Sprintf("pages=%d/gathering=%t", pages, gathers), func(b *testing.B) {
				name := ""
				v, err := New()
				if err != nil {
					b.Fatal(err)
				}
				if gathers {
					name = "&vfs=" + v.Name()
				}
				db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "a.db")+"?"+wal+"&_pragma=synchronous(normal)"+name)
				if err != nil {
					b.Fatal(err)
				}
				db.SetMaxOpenConns(1)
				defer v.Close()
				defer func() { _ = db.Close() }()
				exec := func(text string, args ...any) {
					if _, err := db.Exec(text, args...); err != nil {
						b.Fatal(err)
					}
				}
				exec(createT)
				exec(insertT + "SELECT zeroblob(4000) FROM n LIMIT 64")
				b.ResetTimer()
				for b.Loop() {
					b.StopTimer()
					exec("BEGIN IMMEDIATE")
					exec("UPDATE t SET v = randomblob(3000) WHERE k <= ?", pages)
					b.StartTimer()
					v.Gather()
					exec("COMMIT")
					v.Release()
				}
			})
		}
	}
}
