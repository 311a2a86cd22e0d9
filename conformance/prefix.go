package conformance

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// readPrefix reads historyPrefix: rows as an engine leaves them, without seq, time and execution id.
func readPrefix(o *jsonobject.Object) []history.Record {
	rows := o.Get("historyPrefix").Elements()
	records := make([]history.Record, 0, len(rows))
	for _, v := range rows {
		row := v.Object()
		r := history.Record{
			Kind: history.Kind(row.Require("kind").Choice(string(history.Command), string(history.Event))),
			Name: history.Name(row.Require("name").NonBlank()),
		}
		payload, err := history.DecodePayload(r.Name, jsonvalue.Canonical(orEmpty(row.Get("payload").Map())))
		if err != nil {
			row.Get("payload").Fail("profile", "cannot be read: %v", err)
		}
		r.Payload = payload
		row.Close()
		records = append(records, r)
	}
	return records
}

// appendPrefix stores the prefix as the history of a run.
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
