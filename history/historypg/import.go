package historypg

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

var _ history.Importer = (*Store)(nil)

// Import adds whole runs; see history.Importer. Runs whose text equals this engine's encoding are stored like appends, so that large values
// are kept once; the texts of other runs are stored unchanged.
func (s *Store) Import(ctx context.Context, in history.Import) error {
	const doing = "the runs were not imported"
	batches, err := in.Batches()
	if err != nil {
		return err
	}
	if err := s.mayWrite(ctx, doing); err != nil {
		return err
	}
	order := make([]int, len(batches)) // that of their ids: rows are locked in it
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return bytes.Compare([]byte(batches[a].ExecutionID), []byte(batches[b].ExecutionID))
	})
	return s.transactLong(ctx, doing, false, func(ctx context.Context, tx pgx.Tx) error {
		for i := range in.Definitions {
			if err := s.putDefinition(ctx, tx, &in.Definitions[i]); err != nil {
				return err
			}
		}
		for len(order) > 0 {
			var group []*pending
			size, n := 0, 0
			for ; n < len(order) && n < maxGroup && size < maxGroupBytes; n++ {
				a := s.imported(ctx, &batches[order[n]])
				group, size = append(group, a.pending()), size+a.size
			}
			if err := send(ctx, tx.Conn(), group); err != nil {
				return err
			}
			for k, p := range group {
				i := order[k]
				var err error
				if !p.found {
					err = (&appending{store: s, batch: &batches[i]}).refusal(ctx, tx)
				}
				if errors.Is(err, problem.HistoryConflict) {
					err = problem.New(problem.DuplicateExecutionID, "run %q exists already", batches[i].ExecutionID).
						WithPlace(problem.Place{ExecutionID: batches[i].ExecutionID})
				}
				if h := in.Runs[i].Handled; h != nil && err == nil {
					err = s.storeHandled(ctx, tx, h)
				}
				if err != nil {
					return err
				}
			}
			order = order[n:]
		}
		return nil
	})
}

// imported returns the append of a run.
func (s *Store) imported(ctx context.Context, b *history.Batch) *appending {
	var text []byte
	for i := range b.Records {
		r := &b.Records[i]
		if text = r.AppendPayload(text[:0], b.ExecutionID); r.Foreign || !bytes.Equal(text, r.Raw) {
			return s.compose(b, givenRows(b))
		}
	}
	return s.newAppending(ctx, b)
}

// givenRows returns the records of a batch with unchanged texts.
func givenRows(b *history.Batch) *rows {
	var r rows
	for i := range b.Records {
		x := &b.Records[i]
		r.names, r.payloads = append(r.names, string(x.Name)), append(r.payloads, escaped(string(x.Raw)))
		r.at, r.forms = append(r.at, x.CreatedAt.UnixMilli()), append(r.forms, given)
		r.bytes += int64(len(x.Raw))
	}
	return &r
}
