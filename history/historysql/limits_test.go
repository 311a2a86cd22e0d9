package historysql_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// grantSlots lets a process want slots of a class.
func grantSlots(t *testing.T, s *historysql.Store, process, class string, want int) int {
	t.Helper()
	granted, err := s.Grant(t.Context(), process, history.Want{Class: class, Slots: want})
	if err != nil {
		t.Fatal(err)
	}
	return granted[0].Slots
}

// TestSharedLimitsOfTwoStores: two processes with the same file open share its limits; a reader sees them and changes nothing.
func TestSharedLimitsOfTwoStores(t *testing.T) {
	t.Parallel()
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "runs.db")
	a, b := openFile(t, path, historysql.Options{}), openFile(t, path, historysql.Options{})
	renew(t, a, "p", time.Hour)
	renew(t, b, "q", time.Hour)
	if err := b.SetLimits(ctx, history.SharedLimit{Class: "c", Concurrent: 5}); err != nil {
		t.Fatal(err)
	}
	if p, q := grantSlots(t, a, "p", "c", 3), grantSlots(t, b, "q", "c", 3); p != 3 || q != 2 {
		t.Errorf("the processes hold %d and %d slots", p, q)
	}
	read := openFile(t, path, historysql.Options{ReadOnly: true})
	uses, err := read.SharedLimits(ctx)
	if err != nil || len(uses) != 1 || uses[0].Concurrent != 5 || uses[0].Slots() != 5 || uses[0].Waiting() != 1 {
		t.Errorf("a reader sees %+v, %v", uses, err)
	}
	_, ungranted := read.Grant(ctx, "p", history.Want{Class: "c", Slots: 1})
	for name, err := range map[string]error{"Grant": ungranted, "SetLimits": read.SetLimits(ctx, history.SharedLimit{Class: "c"})} {
		if !errors.Is(err, problem.StoreReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSharesOfEndedProcesses: the next renewal deletes the rows of processes whose lease has ended, and verify those without a limit.
func TestSharesOfEndedProcesses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	if err := s.SetLimits(t.Context(), history.SharedLimit{Class: "c", Concurrent: 5}, history.SharedLimit{Class: "d", Concurrent: 1}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"p", "q"} {
		renew(t, s, p, time.Hour)
		grantSlots(t, s, p, "c", 2)
	}
	rows := func() (n int) {
		(&reference{t, plain(t, path)}).scan("SELECT count(*) FROM shares", &n)
		return n
	}
	if err := s.Script("UPDATE processes SET expires = 1 WHERE process = 'p'"); err != nil {
		t.Fatal(err)
	}
	if n := rows(); n != 2 {
		t.Errorf("%d processes have a share", n)
	}
	renew(t, s, "q", time.Hour)
	if n := rows(); n != 1 {
		t.Errorf("%d processes have a share after one has ended", n)
	}
	if found := verified(t, s, "", true); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	if err := s.Script("DELETE FROM limits WHERE class = 'c'"); err != nil {
		t.Fatal(err)
	}
	if found := verified(t, s, "", true); !slices.Equal(found, []string{"0 ROW_ORPHANED+"}) || rows() != 0 {
		t.Errorf("found %v, and %d shares stay", found, rows())
	}
}

// TestQuestionsInVainWriteNothing: a process that asks again for slots that others hold does not make the file grow.
func TestQuestionsInVainWriteNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	if err := s.SetLimits(t.Context(), history.SharedLimit{Class: "c", Concurrent: 2}); err != nil {
		t.Fatal(err)
	}
	renew(t, s, "p", time.Hour)
	renew(t, s, "q", time.Hour)
	grantSlots(t, s, "p", "c", 2)
	grantSlots(t, s, "q", "c", 1)
	size := fileSize(t, path+"-wal")
	for range 10 {
		if n := grantSlots(t, s, "q", "c", 1); n != 0 {
			t.Errorf("%d slots", n)
		}
	}
	if grown := fileSize(t, path+"-wal"); grown != size {
		t.Errorf("the WAL grows from %d to %d bytes", size, grown)
	}
}
