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
// store's, and the last of them is the one that the append expects. As long as nobody else has written to the file since
// that was last so, it is so still. Otherwise the append looks for the row and for the record: the run may have been
// deleted, and another begun under its id, whose row stands at the same seq.

// maxLag is the number of appends in turn that may leave a row behind. It bounds what a reader has to fold: 1 ms for records
// of activities.
const maxLag = 40

// maxLagRecords is the number of records in an append that may leave a row behind; it bounds that as well.
const maxLagRecords = 12

// maxLags bounds the runs whose rows a store remembers.
const maxLags = 4096

// lag is where this store has left the row of a run.
type lag struct {
	// seq, phase and listed are what the row holds; driven is always 1.
	seq    int64
	phase  history.Phase
	listed int64
	// head is the run's last record. appends were made since the row was moved, and bytes is what they added.
	head    int64
	appends int
	bytes   int64
	// asOf is the state of the file for which this is known.
	asOf fileState
}

// insertLagging inserts the records and leaves the row where it stands, if that may be.
func (s *Store) insertLagging(c *conn, b *history.Batch, t *batchText, blobs int) (lags bool, err error) {
	behind, known := s.lags[b.ExecutionID]
	if !known || behind.head != b.ExpectedSeq {
		return false, nil
	}
	e := &b.Execution
	// Whoever folds the records does not count blobs.
	if b.Position != nil || blobs > 0 || behind.appends == maxLag || len(b.Records) > maxLagRecords || e.Phase != behind.phase || !e.NeedsDriver() ||
		listedAt(e.UpdatedAt.UnixMilli()) != behind.listed {
		return false, nil
	}
	now, err := s.fileState(c)
	if err != nil {
		return false, err
	}
	if behind.asOf == now {
		if err := insertBatch(c, b, t); err != nil {
			return false, err
		}
	} else {
		// It is made sure of in the very statement.
		inserted, err := insertIf(c, b, t, behind.seq)
		if err != nil || !inserted { // somebody else has moved the row, or the records are too different
			return false, err
		}
		behind.asOf = now
	}
	behind.head = e.Seq
	behind.appends++
	behind.bytes += int64(len(t.all))
	s.lags[b.ExecutionID] = behind
	return true, nil
}

// caughtUp gives where the row of a run stands, as far as is known, and forgets it, since it is about to be moved.
func (s *Store) caughtUp(b *history.Batch) lag {
	behind, known := s.lags[b.ExecutionID]
	delete(s.lags, b.ExecutionID)
	if !known || behind.head != b.ExpectedSeq {
		return lag{seq: b.ExpectedSeq}
	}
	return behind
}

// mayLagFrom notes where the row of a run stands now.
func (s *Store) mayLagFrom(c *conn, e *history.Execution) error {
	if !e.NeedsDriver() {
		return nil
	}
	now, err := s.fileState(c)
	if err != nil {
		return err
	}
	if len(s.lags) >= maxLags {
		clear(s.lags)
	}
	s.lags[e.ID] = lag{seq: e.Seq, head: e.Seq, phase: e.Phase, listed: listedAt(e.UpdatedAt.UnixMilli()), asOf: now}
	return nil
}

// lagged reports whether a fold has found something, and nothing but what a row may lag by.
func (f *folding) lagged(from *history.Execution) bool {
	return from.Seq > 0 && f.execution.Seq > from.Seq && f.unreadable == nil && !f.foreign && mayLag(from, &f.execution)
}

// mayLag reports whether a row may stand where it does although the run has gone on.
func mayLag(row, run *history.Execution) bool {
	return row.NeedsDriver() && run.NeedsDriver() && row.Phase == run.Phase &&
		listedAt(row.UpdatedAt.UnixMilli()) == listedAt(run.UpdatedAt.UnixMilli())
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
