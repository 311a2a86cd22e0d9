package history

import (
	"encoding/json"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Row is a record as JSON, with the fields of a record in an exported run (package runfile).
type Row struct {
	Seq       int64           `json:"seq"`
	Kind      Kind            `json:"kind"`
	Name      Name            `json:"name"`
	CreatedAt string          `json:"created_at"`
	Foreign   bool            `json:"foreign,omitempty"`
	Payload   json.RawMessage `json:"payload"`
}

// Row returns the record of a run as a row.
func (r *Record) Row(executionID string) Row {
	return Row{Seq: r.Seq, Kind: r.Kind, Name: r.Name, CreatedAt: FormatTimestamp(r.CreatedAt), Foreign: r.Foreign, Payload: r.Text(executionID)}
}

// Record returns the record of a row, with its text as this engine stores it. The error has code HISTORY_CORRUPT.
func (r *Row) Record(executionID string) (Record, error) {
	at, err := ParseTimestamp(r.CreatedAt)
	if err != nil {
		return Record{}, problem.New(problem.HistoryCorrupt, "the time of record %d cannot be read", r.Seq).WithCause(err).
			WithPlace(problem.Place{ExecutionID: executionID})
	}
	p, err := DecodePayload(r.Name, r.Payload)
	if err != nil {
		return Record{}, err
	}
	rec := Record{Seq: r.Seq, Kind: r.Kind, Name: r.Name, Payload: p, CreatedAt: at, Foreign: r.Foreign}
	rec.Raw = rec.AppendPayload(nil, executionID)
	return rec, nil
}
