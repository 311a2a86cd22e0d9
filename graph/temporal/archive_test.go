package temporal

import (
	"os"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// TestATornLineIsWrittenAgain: a write that was cut short loses no record, also after others were written.
func TestATornLineIsWrittenAgain(t *testing.T) {
	t.Parallel()
	a := OpenFileArchive(t.TempDir())
	var records []history.Record
	for seq := int64(1); seq <= 9; seq++ {
		records = append(records, history.Record{Seq: seq, Kind: history.Event, Name: history.NodeScheduled, Payload: history.Payload{NodeID: "n"}, CreatedAt: time.Unix(seq, 0).UTC()})
	}
	d := history.StoredDefinition{Hash: "h", Name: "d", Text: []byte(`{}`)}
	write := func(n int) {
		t.Helper()
		if err := a.Archive(t.Context(), "r", d, records[:n]); err != nil {
			t.Fatal(err)
		}
	}
	has := func(want int) {
		t.Helper()
		got, err := a.Archived(t.Context(), "r", 1, 0)
		if err != nil || len(got) != want || want > 0 && got[want-1].Seq != int64(want) {
			t.Fatalf("%d records, want %d (%v)", len(got), want, err)
		}
	}
	cut := func(bytes int64) {
		t.Helper()
		info, err := os.Stat(a.path("r"))
		if err == nil {
			err = os.Truncate(a.path("r"), info.Size()-bytes)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(4)
	cut(5)
	has(3)
	write(6)
	has(6)
	cut(1) // the end of the line alone
	write(9)
	has(9)
	if got, err := a.Archived(t.Context(), "r", 4, 2); err != nil || len(got) != 2 || got[0].Seq != 4 {
		t.Errorf("%+v %v", got, err)
	}
}
