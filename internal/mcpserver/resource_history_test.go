package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// recorded is an engine with one run of the given records. It counts how many of them it returned, in all and at once.
type recorded struct {
	graph.Engine
	records   []history.Record
	all, most int
}

func (e *recorded) Status(context.Context, graph.StatusRequest) (*view.Run, error) {
	return &view.Run{ExecutionID: "r", Seq: int64(len(e.records))}, nil
}

func (e *recorded) History(_ context.Context, req graph.HistoryRequest) ([]history.Record, error) {
	from := int(max(req.FromSeq, 1)) - 1
	if from > len(e.records) || req.Limit < 1 {
		return nil, problem.New(problem.ValidationError, "from %d, limit %d", req.FromSeq, req.Limit)
	}
	page := e.records[from:min(from+req.Limit, len(e.records))]
	e.all, e.most = e.all+len(page), max(e.most, len(page))
	return page, nil
}

// TestHistoryIsBounded: the history resource shows the newest records up to a number and a size, leaves out long payloads, names
// what it left out, and does not read more than it shows.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		records, payload int // so many records of such a payload
		shown, cut       int
	}{
		"few":           {records: 3, payload: 100, shown: 3},
		"one":           {records: 1, payload: 100, shown: 1},
		"all":           {records: 500, payload: 100, shown: 500},
		"number":        {records: 1300, payload: 100, shown: 500},
		"size":          {records: 300, payload: 10_000, shown: 104},
		"long payloads": {records: 20, payload: 100_000, shown: 20, cut: 20},
		"reading":       {records: 80, payload: 1 << 20, shown: 15, cut: 15},
		"one too long":  {records: 2, payload: 17 << 20, shown: 1, cut: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &recorded{}
			payload := []byte(`{"pad":"` + strings.Repeat("x", tt.payload) + `"}`)
			for i := range tt.records {
				e.records = append(e.records, history.Record{Seq: int64(i + 1), Kind: history.Event, Name: history.StateUpdated, Raw: payload})
			}
			h := connectHost(t, e, mcpserver.Options{})
			res, err := h.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "awp://runs/r/history"})
			if err != nil {
				t.Fatal(err)
			}
			text := res.Contents[0].Text
			if len(text) > 1<<20+1000 {
				t.Errorf("%d bytes", len(text))
			}
			if e.most > 8 || e.all > tt.shown+8 {
				t.Errorf("read %d records, %d at once", e.all, e.most)
			}
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			if older := tt.records - tt.shown; older > 0 || tt.cut > 0 {
				var head struct {
					Note    string
					LeftOut struct{ Records, Payloads int } `json:"left_out"`
				}
				if err := json.Unmarshal([]byte(lines[0]), &head); err != nil || head.LeftOut.Records != older || head.LeftOut.Payloads != tt.cut ||
					!strings.Contains(head.Note, "workflows-engine history ID --json --from SEQ --limit N") {
					t.Errorf("%v in %s", err, lines[0])
				}
				lines = lines[1:]
			}
			if len(lines) != tt.shown {
				t.Fatalf("%d records", len(lines))
			}
			for i, line := range lines {
				want := fmt.Sprintf(`{"seq":%d,"kind":"event","name":"StateUpdated","payload":%s}`, tt.records-tt.shown+i+1, payload)
				if tt.cut > 0 {
					want = fmt.Sprintf(`{"seq":%d,"kind":"event","name":"StateUpdated","payload_bytes":%d}`, tt.records-tt.shown+i+1, len(payload))
				}
				if line != want {
					t.Fatalf("%.200s, want %.200s", line, want)
				}
			}
		})
	}
}
