package mcpserver

import (
	"context"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// The history resource shows the newest records of a run, until one of these bounds is met.
const (
	maxHistory      = 500     // records
	maxHistoryBytes = 1 << 20 // of the answer
	// maxHistoryRead is how many bytes of payloads are read for one answer.
	maxHistoryRead = 16 << 20
	// maxPayload is the longest payload that is shown; of a longer one stands its length there, in payload_bytes.
	maxPayload = 64 << 10
	// historyPage is how many records are in memory at once.
	historyPage = 8
)

// readHistory answers with the newest records of a run, the oldest of them first. What is left out is said in a line of
// its own before them.
func (s *server) readHistory(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	id := runOf(req.Params.URI, histories)
	run, err := s.Status(ctx, graph.StatusRequest{ExecutionID: id})
	if err != nil {
		return nil, resourceError(req.Params.URI, err)
	}
	var lines historyLines
	for last := run.Seq; last > 0 && !lines.full; last -= historyPage {
		from := max(last-historyPage+1, 1)
		records, err := s.History(ctx, graph.HistoryRequest{ExecutionID: id, FromSeq: from, Limit: int(last - from + 1)})
		if err != nil {
			return nil, resourceError(req.Params.URI, err)
		}
		for i := len(records) - 1; i >= 0 && !lines.full; i-- {
			lines.add(&records[i])
		}
	}
	return contents(req.Params.URI, lines.text()), nil
}

// historyLines are the lines of records, the newest first.
type historyLines struct {
	list        [][]byte
	bytes, read int
	first       int64 // the oldest record that is shown
	cut         int   // payloads that are not shown
	full        bool
}

// add takes one more record, unless a bound is met.
func (l *historyLines) add(r *history.Record) {
	m := runjson.Record(r)
	long := len(r.Raw) > maxPayload
	if long {
		m.Number("payload_bytes", int64(len(r.Raw)))
	} else {
		m.Put("payload", jsonvalue.Raw(r.Raw))
	}
	line := append(m.Append(nil), '\n')
	l.read += len(r.Raw)
	if len(l.list) > 0 && (len(l.list) == maxHistory || l.bytes+len(line) > maxHistoryBytes || l.read > maxHistoryRead) {
		l.full = true
		return
	}
	if long {
		l.cut++
	}
	l.list, l.bytes, l.first = append(l.list, line), l.bytes+len(line), r.Seq
}

// text returns the lines in the order of the records.
func (l *historyLines) text() string {
	var text []byte
	if older := l.first - 1; older > 0 || l.cut > 0 {
		m := members{{"left_out", members{{"records", float64(max(older, 0))}, {"payloads", float64(l.cut)}}}}
		m.Put("note", "Only the newest records are here; of payloads longer than 64 KiB only the length. On the command line "+
			"workflows-engine history ID --json --from SEQ --limit N prints any of them whole.")
		text = append(m.Append(text), '\n')
	}
	slices.Reverse(l.list)
	return string(append(text, slices.Concat(l.list...)...))
}
