package historysql_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestALargePositionIsWrittenOnce: an append without a position does not write the stored one again, however large that is; and nothing
// of it is left once another one, or none, takes its place.
func TestALargePositionIsWrittenOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	x := historytest.NewTrace(t, "x")
	large := bytes.Repeat([]byte("position"), 1<<17)
	with := func(position []byte, line string) {
		t.Helper()
		b := x.Batch(line)
		b.Position = position
		if err := s.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	beside := func(want string) {
		t.Helper()
		if n, err := s.Text("SELECT count(*) FROM positions"); n != want || err != nil {
			t.Errorf("%s positions stand beside their rows, %v, want %s", n, err, want)
		}
	}
	wal := func() int64 {
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	x.Append(s, historytest.Start("w", "in_process")...)
	with(large, "C ScheduleNode a")
	beside("1")
	before := wal()
	for range 20 {
		x.Append(s, "E NodeScheduled a")
	}
	if grown := wal() - before; grown > int64(len(large))/2 {
		t.Errorf("20 appends without a position wrote %d bytes", grown)
	}
	with([]byte("small"), "C ScheduleNode b")
	beside("0")
	with(large, "C ScheduleNode c")
	beside("1")
	x.Append(s, "E ExecutionCompleted")
	beside("0")
	y := historytest.NewTrace(t, "y")
	b := y.Batch("E ExecutionStarted")
	b.Position = large
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	beside("1")
	y.Append(s, "E ExecutionCompleted")
	beside("0")
}

// TestMigrationMovesLargePositions out of the rows of their runs.
func TestMigrationMovesLargePositions(t *testing.T) {
	t.Parallel()
	path := load(t, "version8.sql")
	old := &reference{t, plain(t, path)}
	old.exec("UPDATE executions SET position = zeroblob(5000), position_seq = 2 WHERE execution_id = 'v1-delegate'")
	s := openFile(t, path, historysql.Options{})
	if seq, position, err := s.Position(t.Context(), "v1-delegate"); seq != 2 || len(position) != 5000 || err != nil {
		t.Errorf("record %d, %d bytes, %v", seq, len(position), err)
	}
	if seq, position, err := s.Position(t.Context(), "v1-host"); seq != 11 || string(position) != "position" || err != nil {
		t.Errorf("record %d, %q, %v", seq, position, err)
	}
	if ids, err := s.Text("SELECT group_concat(execution_id) FROM executions WHERE position IS NULL AND position_seq > 0"); ids != "v1-delegate" || err != nil {
		t.Errorf("moved the positions of %s, %v", ids, err)
	}
}
