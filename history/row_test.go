package history_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

func TestRowsKeepRecords(t *testing.T) {
	t.Parallel()
	rec := history.Record{Seq: 7, Kind: history.Event, Name: history.StateUpdated, CreatedAt: time.UnixMilli(1_700_000_000_123).UTC()}
	rec.Payload.NodeID, rec.Payload.State = "n", map[string]any{"html": "<a & b>", "n": 1.5, "list": []any{nil, true}}
	text, err := json.Marshal(rec.Row("r"))
	if err != nil {
		t.Fatal(err)
	}
	var row history.Row
	if err := json.Unmarshal(text, &row); err != nil {
		t.Fatal(err)
	}
	got, err := row.Record("r")
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Raw) != string(rec.Text("r")) || got.Seq != rec.Seq || got.Kind != rec.Kind || got.Name != rec.Name || !got.CreatedAt.Equal(rec.CreatedAt) {
		t.Errorf("got %+v, want %+v", got, rec)
	}
	row.CreatedAt = "yesterday"
	if _, err := row.Record("r"); err == nil {
		t.Error("a time that is none is accepted")
	}
}
