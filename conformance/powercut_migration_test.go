package conformance_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// olderFiles are databases of every older version, as SQL.
func olderFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"version*.sql"} {
		found, err := filepath.Glob(filepath.Join("..", "history", "historysql", "testdata", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%v, %v", found, err)
		}
		files = append(files, found...)
	}
	return files
}

// TestPowerCutMigrationWorker is the process that is traced: it makes each older database, durably, and opens it. Every second one is open
// elsewhere meanwhile, so that what is in it stands in its WAL.
func TestPowerCutMigrationWorker(t *testing.T) {
	root := os.Getenv(powerFolder)
	if root == "" {
		t.Skip("TestPowerCutMigration starts this one")
	}
	marks, err := os.OpenFile(powerMarks(root), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for number, file := range olderFiles(t) {
		s := &markingStore{path: powerFile(powerDisk(root), number), t: t, marks: marks}
		s.say("case", filepath.Base(file), 0)
		made := makeOlder(t, file, s.path)
		if number%2 == 0 {
			_ = made.Close()
		}
		for path := s.path; path != root; path = filepath.Dir(path) {
			flushPath(t, path)
		}
		flushPath(t, s.path+"-wal")
		s.say("begun", "", 0)
		store, err := historysql.Open(t.Context(), s.path, historysql.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.say("opened", "", 0)
		_ = made.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		_ = s.index.Close()
	}
}

// makeOlder makes a database from SQL, and returns the connection that has made it.
func makeOlder(t *testing.T, file, path string) *sql.DB {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path}).String())
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	for _, statements := range []string{"PRAGMA journal_mode = WAL", string(text)} {
		if _, err := db.ExecContext(t.Context(), statements); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// flushPath flushes a file that is there, or the names in a folder.
func flushPath(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return
	}
	if err == nil {
		err = f.Sync()
		_ = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPowerCutMigration: after a power cut at any moment of a migration the database is of the old version or of the new one, and holds all
// runs. It is of the new one once Open has returned, and once it is, a whole copy of the old one stands beside it. Opened, it is migrated.
func TestPowerCutMigration(t *testing.T) {
	t.Parallel()
	root, ops := tracedWorker(t, "TestPowerCutMigrationWorker")
	for number, file := range olderFiles(t) {
		name := filepath.Base(file)
		w := &powerRun{powerCase: powerCase{filled: true}, number: number, path: powerFile(powerDisk(root), number), disk: powerDisk(root)}
		w.ops, w.first = ofCase(ops, name)
		opened := slices.IndexFunc(w.ops, func(op diskOp) bool { return op.mark.what == "opened" })
		w.ops = w.ops[:opened+1]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := filepath.Join(t.TempDir(), "runs.db")
			_ = makeOlder(t, file, whole).Close()
			found := inspect(t, whole)
			m := &migrationCut{old: found.From, want: everyRecord(t, whole), states: map[bool]int{}}
			if found.From == found.To || found.Runs == 0 {
				t.Fatalf("%+v", found)
			}
			cuts := w.cuts(soak.Size(8, 4, len(w.ops)), soak.Size(1, 1, 8), uint64(soak.Setting("SOAK_SEED", 1)), func(p *powerCut) {
				if !t.Failed() {
					m.check(t, p)
				}
			})
			last := &powerCut{powerRun: w, at: len(w.ops), what: "after the last operation"}
			d := newDisk(w.disk)
			for i, op := range w.ops {
				d.apply(w.first+1+i, op)
			}
			last.image = d.image(nothing, rand.New(rand.NewPCG(1, 1)))
			m.check(t, last)
			t.Logf("%d cuts, %d images before the migration, %d after it", cuts, m.states[false], m.states[true])
			if m.states[false] == 0 || m.states[true] == 0 {
				t.Errorf("%v", m.states)
			}
		})
	}
}

// migrationCut checks what is left of the migration of a file.
type migrationCut struct {
	old  int // version
	want map[string][]string
	// states counts the images that are migrated, and those that are not.
	states map[bool]int
}

func (m *migrationCut) check(t *testing.T, p *powerCut) {
	t.Helper()
	dir := t.TempDir()
	p.put(t, dir)
	path := p.file(dir)
	found := inspect(t, path)
	migrated := found.From == found.To
	m.states[migrated]++
	told := slices.ContainsFunc(p.ops[:p.at], func(op diskOp) bool { return op.mark.what == "opened" })
	if !migrated && (told || found.From != m.old) {
		t.Errorf("%s: version %d, opened %v", p.what, found.From, told)
	}
	copies := func() []string {
		list, err := filepath.Glob(path + ".v*.bak")
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	before := copies()
	if got := everyRecord(t, path); !reflect.DeepEqual(got, m.want) {
		t.Errorf("%s: the database has %v, want %v", p.what, got, m.want)
	}
	if migrated && len(before) != 1 || len(copies()) == 0 {
		t.Errorf("%s: migrated %v, copies %v, then %v", p.what, migrated, before, copies())
	}
	for _, name := range copies() {
		if got := inspect(t, name); got.From != m.old {
			t.Errorf("%s: %s has the version %d", p.what, name, got.From)
		}
		if got := everyRecord(t, name); !reflect.DeepEqual(got, m.want) {
			t.Errorf("%s: the copy %s has %v", p.what, name, got)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.partial")); len(left) > 0 {
		t.Errorf("%s: %v is left", p.what, left)
	}
}

func inspect(t *testing.T, path string) historysql.Migration {
	t.Helper()
	m, err := historysql.Inspect(t.Context(), path, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// everyRecord opens a database, which migrates it, and returns the records of each run, and what Verify finds.
func everyRecord(t *testing.T, path string) map[string][]string {
	t.Helper()
	store, err := historysql.Open(t.Context(), path, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	all := map[string][]string{}
	if _, err := store.Verify(t.Context(), "", false, func(f history.Finding) { all["findings"] = append(all["findings"], f.Message) }); err != nil {
		t.Error(err)
	}
	page, err := store.List(t.Context(), history.ListQuery{})
	if err != nil || page.NextCursor != "" {
		t.Fatalf("%+v, %v", page, err)
	}
	for _, e := range page.Executions {
		records, err := store.Read(t.Context(), e.ID, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range records {
			all[e.ID] = append(all[e.ID], recordText(e.ID, &records[i]))
		}
		all[e.ID] = append(all[e.ID], fmt.Sprint(e.Phase, e.Seq))
	}
	return all
}
