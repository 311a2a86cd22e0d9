package conformance_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// powerFolder makes the test binary do the work on files in this folder; see TestPowerCutWorker.
const powerFolder = "CONFORMANCE_TEST_POWER_FOLDER"

// powerCase is a run of an example.
type powerCase struct {
	c    *crashCase
	mode machine.Mode
	// filled means that the WAL is nearly full when the run begins, so that it is copied to the database and begun anew meanwhile.
	filled bool
	// synchronous is that of the store.
	synchronous string
}

func (p *powerCase) name() string {
	name := fmt.Sprintf("%s/%s/%s", strings.TrimPrefix(p.c.name, "examples/"), p.mode, p.synchronous)
	if p.filled {
		name += "/filled"
	}
	return name
}

// powerCases returns every example in both modes. The long form has each in process also with a WAL that is nearly full, and with a
// store that flushes less; the short form the first, for which it takes an example with several flushes. Under the race detector
// there are fewer.
func powerCases(t *testing.T) (cases []powerCase) {
	t.Helper()
	examples := exampleCases(t)
	slices.SortStableFunc(examples, func(a, b *crashCase) int { return cmp.Compare(rank(a), rank(b)) })
	for i, c := range examples {
		c.measure()
		for _, mode := range []machine.Mode{machine.InProcess, machine.HostMediated} {
			if soak.UnderRace && !soak.On() && (mode == machine.InProcess) != (i%2 == 0) {
				continue
			}
			cases = append(cases, powerCase{c, mode, false, historysql.Full})
			if mode == machine.InProcess && (i == 0 || soak.On()) {
				cases = append(cases, powerCase{c, mode, true, historysql.Full})
				if soak.On() || !soak.UnderRace {
					cases = append(cases, powerCase{c, mode, true, historysql.Normal})
				}
			}
		}
	}
	return cases
}

// rank orders the cases.
func rank(c *crashCase) int {
	if strings.HasPrefix(c.name, "examples/approval-loop/") {
		return 0
	}
	return 1
}

// powerDisk and powerMarks are the traced folder, and the file beside it that the process writes its marks to.
func powerDisk(root string) string  { return filepath.Join(root, "disk") }
func powerMarks(root string) string { return filepath.Join(root, "marks") }

// powerFile is the database of a case. The store makes its folders.
func powerFile(disk string, number int) string {
	return filepath.Join(disk, fmt.Sprint(number), "data", "runs.db")
}

// openPowered opens a store on a machine that started at the given time.
func openPowered(t *testing.T, path, boot string, booted time.Time, synchronous string) (*historysql.Store, error) {
	return historysql.Open(t.Context(), path, historysql.Options{
		Synchronous: synchronous, Now: time.Now, Uptime: func() (string, time.Duration) { return boot, time.Since(booted) },
	})
}

// TestPowerCutWorker is the process that is traced.
func TestPowerCutWorker(t *testing.T) {
	root := os.Getenv(powerFolder)
	if root == "" {
		t.Skip("the other tests of power cuts start this one")
	}
	marks, err := os.OpenFile(powerMarks(root), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	given := map[int]map[string]object{}
	for number, p := range powerCases(t) {
		inBubble(t, func(t *testing.T) {
			w := &markingStore{path: powerFile(powerDisk(root), number), t: t, marks: marks}
			given[number] = w.work(p, number)
		})
	}
	text, err := json.Marshal(given)
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "given.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// markingStore says which writes were acknowledged.
type markingStore struct {
	history.Store
	t     *testing.T
	path  string
	marks *os.File
	index *os.File // open until the store is closed: to close it would release SQLite's locks on it
}

func (s *markingStore) say(what, name string, seq int64) {
	m := mark{what: what, name: name, seq: seq, at: time.Now()}
	if s.index == nil {
		s.index, _ = os.Open(s.path + "-shm")
	}
	if s.index != nil {
		head := make([]byte, 136)
		if n, _ := s.index.ReadAt(head, 0); n == len(head) {
			m.index = head
		}
	}
	if _, err := s.marks.WriteString(m.line()); err != nil {
		s.t.Error(err)
	}
}

func (s *markingStore) Append(ctx context.Context, b history.Batch) error {
	err := s.Store.Append(ctx, b)
	if err == nil {
		s.say("ack", b.ExecutionID, b.ExpectedSeq+int64(len(b.Records)))
	}
	return err
}

func (s *markingStore) PutDefinition(ctx context.Context, d history.StoredDefinition) error {
	err := s.Store.PutDefinition(ctx, d)
	if err == nil {
		s.say("definition", d.Hash, 0)
	}
	return err
}

// work runs a case to its end, and returns what people and signals answered.
func (s *markingStore) work(p powerCase, number int) map[string]object {
	t := s.t
	s.say("case", p.name(), int64(number))
	store, err := openPowered(t, s.path, "first", time.Now(), p.synchronous)
	if err != nil {
		t.Fatal(err)
	}
	s.Store = store
	s.say("opened", "", 0)
	const nearlyFull = 940 * 4120 // SQLite copies a WAL of 1,000 pages
	for n := 0; p.filled; n++ {
		if info, err := os.Stat(s.path + "-wal"); err != nil || info.Size() >= nearlyFull {
			break
		}
		text := object{"filler": float64(n), "text": strings.Repeat("x", 60<<10)}
		d := history.StoredDefinition{Hash: jsonvalue.Hash(text), Name: "filler", Version: fmt.Sprint(n), Text: jsonvalue.Canonical(text)}
		if err := s.PutDefinition(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	s.say("begun", "", 0)
	x := newTrial(t, p.c, crashMode{p.mode, false}, s)
	x.inOrder = true
	x.performs = func(key string) { s.say("perform", key, 0) }
	r := x.runner(s)
	if _, err := x.drive(r); err != nil {
		t.Fatal(err)
	}
	x.close(r)
	s.say("ended", "", 0)
	x.closeStore()
	s.say("closed", "", 0)
	if s.index != nil {
		_ = s.index.Close()
	}
	return x.given
}
