package historysql_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

func owner(t *testing.T, s history.Store, id string) history.Owner {
	t.Helper()
	o, err := s.Owner(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func claim(t *testing.T, s history.Store, process string, want bool, id string) {
	t.Helper()
	claimed, err := s.Claim(t.Context(), process, id)
	if err != nil || slices.Contains(claimed, id) != want {
		t.Errorf("%s claims %s: got %v, %v", process, id, claimed, err)
	}
}

func renew(t testing.TB, s history.Store, process string, ttl time.Duration) {
	t.Helper()
	if err := s.Renew(t.Context(), process, ttl); err != nil {
		t.Fatal(err)
	}
}

// TestProcessesThatAreGoneLeaveNoRows, as long as they own nothing.
func TestProcessesThatAreGoneLeaveNoRows(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	at := historytest.Begin
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{Now: func() time.Time { return at }})
	historytest.NewTrace(t, "x").Append(s, historytest.Start("w", "in_process")...)
	rows := func(want string) {
		t.Helper()
		if got, err := s.Text("SELECT group_concat(process) FROM (SELECT process FROM processes ORDER BY process)"); got != want || err != nil {
			t.Errorf("the rows of %q, %v; want those of %q", got, err, want)
		}
	}
	for _, process := range []string{"crashed", "owner", "released"} {
		renew(t, s, process, time.Minute)
	}
	claim(t, s, "owner", true, "x")
	if err := s.Release(ctx, "released"); err != nil {
		t.Fatal(err)
	}
	rows("crashed,owner")
	at = at.Add(time.Hour)
	renew(t, s, "another", time.Minute)
	rows("another,owner")
	claim(t, s, "another", true, "x")
	renew(t, s, "another", time.Minute)
	rows("another")
}

// TestClaimersOfSeveralStores: handles of one file claim like processes do.
func TestClaimersOfSeveralStores(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	historytest.ContendForRuns(t, 6, 60,
		openFile(t, path, historysql.Options{}), openFile(t, path, historysql.Options{}), openFile(t, path, historysql.Options{}))
}

// claimerFile makes the test binary claim and disown the runs of this file until it is killed; see claimForever.
const claimerFile = "HISTORYSQL_TEST_CLAIMER"

const claimedRuns = 20

// claimForever says on stdout that it has claimed all runs, and that it has given them up again. Beside that it drives a
// run, so that claims share transactions with appends.
func claimForever(path string) {
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	s, err := historysql.Open(ctx, path, historysql.Options{})
	check(err)
	check(s.Renew(ctx, "child", time.Hour))
	_, err = s.Claim(ctx, "child", "driven")
	check(err)
	e, err := s.Execution(ctx, "driven")
	check(err)
	go func() {
		for {
			r, err := historytest.ParseRecord("C ScheduleNode a")
			check(err)
			r.CreatedAt = historytest.Begin
			b := history.Batch{ExecutionID: "driven", ExpectedSeq: e.Seq, Records: []history.Record{r}, Owner: "child"}
			e.Apply(r)
			b.Execution = e
			check(s.Append(ctx, b))
		}
	}()
	for {
		claimed, err := s.Claim(ctx, "child", claimedIDs()...)
		check(err)
		fmt.Println("claimed", len(claimed))
		check(s.Disown(ctx, "child", claimedIDs()...))
		fmt.Println("disowned")
	}
}

func claimedIDs() (ids []string) {
	for i := range claimedRuns {
		ids = append(ids, fmt.Sprintf("run%d", i))
	}
	return ids
}

// TestAClaimerThatIsKilled owns all runs that it has claimed or none, and keeps them until its lease ends.
func TestAClaimerThatIsKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short leaves out what starts processes")
	}
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	for _, id := range append(claimedIDs(), "driven") {
		historytest.NewTrace(t, id).Append(s, historytest.Start("w", "in_process")...)
	}
	for round := range 5 {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), claimerFile+"="+path)
		cmd.Stderr = t.Output()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewScanner(out)
		for n := 0; n < 3+round && said.Scan(); n++ {
			if text := said.Text(); text != fmt.Sprint("claimed ", claimedRuns) && text != "disowned" {
				t.Fatalf("the process said %q", text)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // which reports that it was killed
		owned, err := s.Owned(ctx, "child")
		delete(owned, "driven")
		if err != nil || len(owned) != 0 && len(owned) != claimedRuns {
			t.Fatalf("round %d: the process that was killed owns %d of %d runs, %v", round, len(owned), claimedRuns, err)
		}
		renew(t, s, "parent", time.Hour)
		claim(t, s, "parent", false, "driven")
		if err := s.Release(ctx, "child"); err != nil {
			t.Fatal(err)
		}
		if o, err := s.Overview(ctx, "child"); !slices.Equal(o.Departed, []string{"child"}) || err != nil {
			t.Errorf("%+v, %v", o, err)
		}
		for _, id := range append(claimedIDs(), "driven") {
			claim(t, s, "parent", true, id)
		}
		if err := s.Disown(ctx, "parent", append(claimedIDs(), "driven")...); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkOwners measures what is asked about 20,000 runs of one process whose lease has not run out, and a claim of 500.
func BenchmarkOwners(b *testing.B) {
	s := openFile(b, filepath.Join(b.TempDir(), "runs.db"), historysql.Options{Synchronous: historysql.Normal})
	ctx := b.Context()
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	check(s.Renew(ctx, "p", time.Hour))
	var ids []string
	for i := range 20_000 {
		id := fmt.Sprintf("%08x-d9cb-469f-a165-%012d", uint32(i)*2654435761, i)
		ids = append(ids, id)
		h := historytest.NewTrace(b, id).Batch(historytest.Start("w", "in_process")...)
		h.Owner, h.Position = "p", make([]byte, 600)
		check(s.Append(ctx, h))
	}
	for _, bench := range []struct {
		name string
		call func() error
	}{
		{"overview", func() error { _, err := s.Overview(ctx, "p"); return err }},
		{"unowned", func() error { _, err := s.Unowned(ctx, 100); return err }},
		{"owner", func() error { _, err := s.Owner(ctx, ids[7]); return err }},
		{"owned", func() error { _, err := s.Owned(ctx, "p"); return err }},
		{"renew", func() error { return s.Renew(ctx, "p", time.Hour) }},
		{"claim and disown 500", func() error {
			_, err := s.Claim(ctx, "p", ids[:500]...)
			return errors.Join(err, s.Disown(ctx, "p", ids[:500]...))
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				check(bench.call())
			}
		})
	}
	claimed, err := s.Claim(ctx, "p", ids[:500]...)
	check(err)
	if len(claimed) != 500 {
		b.Fatal(len(claimed))
	}
	check(s.Release(ctx, "p"))
	b.Run("unowned, 100 of 20000", func(b *testing.B) {
		for b.Loop() {
			found, err := s.Unowned(ctx, 100)
			if check(err); len(found) != 100 {
				b.Fatal(len(found))
			}
		}
	})
}
