package historysql_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// childFile makes the test binary append to a run of this file until it is killed; see appendForever.
const childFile = "HISTORYSQL_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		appendForever(path)
		return
	}
	if path := os.Getenv(claimerFile); path != "" {
		claimForever(path)
		return
	}
	if path := os.Getenv(holderFile); path != "" {
		hold(path)
		return
	}
	if path := os.Getenv(migratedFile); path != "" {
		migrateAndExit(path)
		return
	}
	os.Exit(m.Run())
}

// holderFile makes the test binary keep this file open until its standard input ends; see hold.
const holderFile = "HISTORYSQL_TEST_HOLDER"

// hold opens a store and begins the run "held", says so, and closes the store when its standard input has ended.
func hold(path string) {
	ctx := context.Background()
	s, err := historysql.Open(ctx, path, historysql.Options{})
	if err == nil {
		err = s.Append(ctx, firstRecord("held"))
	}
	fmt.Println("holds", err)
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.LookAgain()
	err = s.Append(ctx, firstRecord("late"))
	fmt.Println(errors.Is(err, problem.StoreReplaced), s.Close())
}

func firstRecord(id string) history.Batch {
	r, err := historytest.ParseRecord(`E ExecutionStarted {"workflowName":"w","workflowVersion":"1"}`)
	if err != nil {
		panic(err)
	}
	r.CreatedAt = historytest.Begin
	records := []history.Record{r}
	return history.Batch{ExecutionID: id, Records: records, Execution: history.Project(id, records)}
}

// appendForever appends batches of three records to the run "killed", behind whatever is there, and says each seq that
// is durable on stdout.
func appendForever(path string) {
	ctx := context.Background()
	s, err := historysql.Open(ctx, path, historysql.Options{})
	if err != nil {
		panic(err)
	}
	for {
		e, err := s.Execution(ctx, "killed")
		if errors.Is(err, problem.ExecutionNotFound) {
			e, err = history.Execution{ID: "killed"}, nil
		}
		if err != nil {
			panic(err)
		}
		b := history.Batch{ExecutionID: "killed", ExpectedSeq: e.Seq}
		for _, line := range []string{"C ScheduleNode a", "E NodeScheduled a", `E StateUpdated a {"state":{"text":"some text that fills the page"}}`} {
			r, err := historytest.ParseRecord(line)
			if err != nil {
				panic(err)
			}
			r.CreatedAt = historytest.Begin.Add(time.Duration(e.Seq) * time.Millisecond)
			e.Apply(r)
			b.Records = append(b.Records, r)
		}
		b.Execution = e
		b.Position = fmt.Appendf(nil, "position at %d", e.Seq)
		switch err := s.Append(ctx, b); {
		case err == nil:
			fmt.Println(e.Seq)
		case !errors.Is(err, problem.HistoryConflict):
			panic(err)
		}
	}
}

// TestKilledProcess: what a killed process has been told to be durable is there, whole, and others go on. Two of them
// write to one run, so that one is killed while the other writes.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short leaves out what starts processes")
	}
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	for round := range 2 {
		durable := 0
		for range 2 {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), childFile+"="+path)
			cmd.Stderr = t.Output()
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			told := bufio.NewScanner(out)
			for n := 0; n < 5+7*round && told.Scan(); n++ {
				seq, err := strconv.Atoi(told.Text())
				if err != nil {
					t.Fatalf("the process said %q", told.Text())
				}
				durable = max(durable, seq)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // which reports that it was killed
		}
		fresh := openFile(t, path, historysql.Options{})
		for _, store := range []*historysql.Store{s, fresh} {
			records := mustRead(t, store, "killed")
			if len(records) < durable || len(records)%3 != 0 {
				t.Fatalf("round %d: %d records, of which %d had been reported", round, len(records), durable)
			}
			e, err := store.Execution(t.Context(), "killed")
			if want := history.Project("killed", records); err != nil || string(e.AppendText(nil)) != string(want.AppendText(nil)) {
				t.Fatalf("round %d: projection %s, %v", round, e.AppendText(nil), err)
			}
			seq, position, err := store.Position(t.Context(), "killed")
			if want := fmt.Sprintf("position at %d", len(records)); string(position) != want || seq != int64(len(records)) || err != nil {
				t.Fatalf("round %d: position %d %q, %v", round, seq, position, err)
			}
		}
	}
}

// TestW61_SeveralStores: handles of one file take turns like processes do.
func TestW61_SeveralStores(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	historytest.Contend(t, 4, 8,
		openFile(t, path, historysql.Options{}), openFile(t, path, historysql.Options{}), openFile(t, path, historysql.Options{}))
}

// TestW49_BatchesAreTransactions: a copy of file and log, as a power cut would leave them, holds every batch whole.
func TestW49_BatchesAreTransactions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	x := historytest.NewTrace(t, "x")
	x.Append(s, historytest.Start("w", "host_mediated")...)
	for range 5 {
		x.Append(s, historytest.Node("a", "b")...)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	for _, kept := range []int{len(log), len(log) - 1, len(log) * 9 / 10, len(log) / 2, 0} {
		copied := filepath.Join(t.TempDir(), "runs.db")
		if err := errors.Join(os.WriteFile(copied, content, 0o600), os.WriteFile(copied+"-wal", log[:kept], 0o600)); err != nil {
			t.Fatal(err)
		}
		s := openFile(t, copied, historysql.Options{})
		records := mustRead(t, s, "x")
		if n := len(records); n != 0 && (n-5)%6 != 0 || kept == len(log) && n != 35 || kept < len(log) && n == 35 {
			t.Errorf("%d of %d bytes of the log: %d records", kept, len(log), n)
		}
		y := historytest.NewTrace(t, "x")
		if len(records) > 0 {
			y.Execution, err = s.Execution(t.Context(), "x")
			if want := history.Project("x", records); err != nil || string(y.Execution.AppendText(nil)) != string(want.AppendText(nil)) {
				t.Errorf("%d of %d bytes of the log: projection %s, %v", kept, len(log), y.Execution.AppendText(nil), err)
			}
		}
		y.Append(s, "C ScheduleNode z")
	}
}
