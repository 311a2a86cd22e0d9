package conformance

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// readPrefix reads historyPrefix: rows as an engine would have left them, without seq, time and execution id.
func readPrefix(o object) []history.Record {
	rows, _ := o.list("historyPrefix", false)
	records := make([]history.Record, 0, len(rows))
	for _, row := range rows {
		r := history.Record{
			Kind: history.Kind(row.word("kind", true, string(history.Command), string(history.Event))),
			Name: history.Name(row.text("name", true)),
		}
		payload, err := history.DecodePayload(r.Name, jsonvalue.Canonical(orEmpty(row.plain("payload"))))
		if err != nil {
			o.problems.add(row.place("payload"), "cannot be read: %v", err)
		}
		r.Payload = payload
		row.end()
		records = append(records, r)
	}
	return records
}

// appendPrefix makes the prefix the history of a run.
func appendPrefix(ctx context.Context, store history.Store, id string, prefix []history.Record) error {
	if len(prefix) == 0 {
		return nil
	}
	batch := history.Batch{ExecutionID: id, Records: slices.Clone(prefix)}
	now := time.Now().UTC().Truncate(time.Millisecond)
	for i := range batch.Records {
		batch.Records[i].Seq = int64(i + 1)
		batch.Records[i].CreatedAt = now
	}
	batch.Execution.ID = id
	for _, r := range batch.Records {
		batch.Execution.Apply(r)
	}
	return store.Append(ctx, batch)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
