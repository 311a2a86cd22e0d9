package historysql

import (
	"context"

	"github.com/workflows-engine/workflows-engine/history"
)

// A run that a process drives at full speed appends every few hundred microseconds, and its row of executions would be
// written again each time. So the row may lag: as long as nothing changes in it that lists find it by, an append leaves
// it where it stands, up to maxLag times in turn. The records say everything, so a reader who finds the row behind folds
// those that it has not seen. It need not store the result: whoever drives the run will.
//
// An append may do so if the row stands where this store has left it itself, so that all records behind it are this
// store's, and thus no record of the run can be missing.

// maxLag is the number of appends in turn that may leave a row behind. It bounds what a reader has to fold.
const maxLag = 16

// maxLags bounds the runs whose rows a store remembers.
const maxLags = 4096

// lag is where this store has left the row of a run.
type lag struct {
	// seq, phase and listed are what the row holds; driven is always 1.
	seq    int64
	phase  history.Phase
	listed int64
	// appends were made since, and bytes is what they added.
	appends int
	bytes   int64
}

// lag reports whether the row may stay where it is. Otherwise behind is where it stands, as far as is known.
func (s *Store) lag(c *conn, b *history.Batch, text int, added int64) (behind lag, lags bool, err error) {
	behind, known := s.lags[b.ExecutionID]
	if !known {
		return lag{seq: b.ExpectedSeq}, false, nil
	}
	delete(s.lags, b.ExecutionID)
	switch found, err := c.one(standsAt, b.ExecutionID, behind.seq); {
	case err != nil:
		return lag{}, false, err
	case found == nil: // somebody else has moved it
		return lag{seq: b.ExpectedSeq}, false, nil
	}
	e := &b.Execution
	// Blobs are not counted by whoever folds the records.
	if b.Position != nil || added != int64(text) || behind.appends == maxLag || e.Phase != behind.phase || !e.NeedsDriver() ||
		listedAt(e.UpdatedAt.UnixMilli()) != behind.listed {
		return behind, false, nil
	}
	behind.appends++
	behind.bytes += added
	s.lags[b.ExecutionID] = behind
	return behind, true, nil
}

// stored notes where the row of a run stands now, if it may lag from there.
func (s *Store) stored(e *history.Execution, err error) {
	if err != nil || e.Phase.Terminal() || !e.NeedsDriver() {
		return
	}
	if len(s.lags) >= maxLags {
		clear(s.lags)
	}
	s.lags[e.ID] = lag{seq: e.Seq, phase: e.Phase, listed: listedAt(e.UpdatedAt.UnixMilli())}
}

// lagged reports whether a fold has found nothing but what a row may lag by.
func (f *folding) lagged(from *history.Execution) bool {
	return from.Seq > 0 && f.unreadable == nil && !f.foreign && mayLag(from.Phase, &f.execution)
}

// mayLag reports whether the row of a run may lie behind, as far as its phase tells.
func mayLag(stored history.Phase, e *history.Execution) bool {
	return e.Phase == stored && e.NeedsDriver()
}

// upTo folds the records up to head for lists, which order the run by what its row says.
func (s *Store) upTo(ctx context.Context, e history.Execution, head int64) (history.Execution, error) {
	if e.Seq >= head {
		return e, nil
	}
	f, err := s.fold(ctx, e, head)
	if err != nil {
		return e, err
	}
	if f.unreadable != nil {
		return e, nil // whoever asks for the run itself is told
	}
	f.execution.UpdatedAt = e.UpdatedAt
	return f.execution, nil
}
