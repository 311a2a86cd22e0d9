package historysql

import (
	"context"
	"fmt"

	"github.com/workflows-engine/workflows-engine/history"
)

// refreshProjection folds the records that the projection of a run has not seen and stores the result; a read-only store
// folds them up to head and stores nothing.
//
// Records are read before the write lock is taken, because the reference engine does not wait for locks; those that were
// added meanwhile are read under it.
func (s *Store) refreshProjection(ctx context.Context, e history.Execution, head int64) (history.Execution, error) {
	const doing = "the run could not be brought up to date"
	if head == 0 {
		return history.Execution{}, history.NotFound(e.ID)
	}
	f, err := s.fold(ctx, e, head)
	if err != nil {
		return history.Execution{}, failure(doing, err)
	}
	if s.options.ReadOnly {
		return f.execution, f.err()
	}
	err = s.write(ctx, doing, func(c *conn) error { return f.finish(c, f.execution.Seq+1) })
	if err == nil {
		err = f.err()
	}
	return f.execution, err
}

// finish folds the records from seq on within a transaction and stores the projection.
func (f *folding) finish(c *conn, seq int64) error {
	rows, err := rowsOf(c, f.execution.ID, seq, -1)
	if err != nil {
		return err
	}
	f.reader = newRowReader(f.execution.ID, shelf{c}, true)
	for i := range rows {
		if err := f.apply(&rows[i]); err != nil {
			return err
		}
	}
	e := &f.execution
	// The run may have been deleted since it was read.
	switch found, err := c.one(rowExists, e.ID, e.Seq); {
	case err != nil:
		return err
	case found == nil:
		return history.NotFound(e.ID)
	}
	unreadable := ""
	if f.unreadable != nil {
		unreadable = fmt.Sprintf("%s: %s", f.unreadable.Code, f.unreadable.Message)
	}
	var positionSeq any
	if e.Phase.Terminal() {
		positionSeq = int64(0)
	}
	if err := storeExecution(c, e, unreadable, positionSeq, nil); err != nil {
		return err
	}
	if e.Phase.Terminal() {
		for _, text := range []string{dropPosition, dropTimers} {
			if _, err := c.exec(text, e.ID); err != nil {
				return err
			}
		}
		if _, err := c.exec(disownExecution, e.ID, nil, nil); err != nil {
			return err
		}
	}
	return nil
}
