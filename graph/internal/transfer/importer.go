package transfer

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// sign names in the first record of a run who imports it and when, instead of who did so before. Without an actor the record stays
// as it is. The rest of its text is not written again: it may be another engine's.
func sign(ctx context.Context, store history.Store, first *history.Record) error {
	by := run.ActorOf(ctx)
	if by == nil {
		return nil
	}
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	text := withoutImporter(first, first.Raw)
	if p, err := history.DecodePayload(first.Name, text); err != nil || p.ImportedBy != nil || !p.ImportedAt.IsZero() {
		return problem.New(problem.ImportInvalid, "the first record of the run says in another form who imported it").WithCause(err).
			WithHint("Nothing was imported. Export the run again from the database where it is.")
	}
	first.Payload.ImportedBy, first.Payload.ImportedAt = by, now.UTC().Truncate(time.Millisecond)
	first.Raw = slices.Concat(bytes.TrimSuffix(text, []byte("}")), importer(&first.Payload))
	return nil
}

// withoutImporter returns the text of a record without its last members, if these say who imported the run.
func withoutImporter(r *history.Record, text []byte) []byte {
	if r.Payload.ImportedBy == nil {
		return text
	}
	rest, found := bytes.CutSuffix(text, importer(&r.Payload))
	if !found {
		return text
	}
	return append(bytes.Clone(rest), '}')
}

// importer returns the end of the text of a record that says who imported the run.
func importer(p *history.Payload) []byte {
	r := history.Record{Payload: history.Payload{ImportedAt: p.ImportedAt, ImportedBy: p.ImportedBy}}
	return bytes.TrimPrefix(r.AppendPayload(nil, ""), []byte(`{"executionId":""`))
}
