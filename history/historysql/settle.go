package historysql

import (
	"errors"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// failedFlush reports whether an error of commit leaves it open whether the transaction is stored: its last bytes may have
// reached the disk. A disk that is full has not taken them.
func failedFlush(err error) bool { return primaryCode(err) == sqlite3.SQLITE_IOERR && !isFull(err) }

// settle returns the result of a write whose transaction failed to commit. It looks at the file through another connection, and makes
// the change once more if it is not there: what it commits is written over what the failed commit has left in the WAL, which a
// crash might otherwise bring back. If that fails too, the change may be stored or not.
func (s *Store) settle(p *pending, failed error) error {
	c, err := s.begin(background)
	if err == nil {
		if err = withoutPanic(c, p.changeOnce(s)); err != nil {
			s.rollback(c)
			if e, ok := problem.As(err); ok && e.Code != problem.Internal {
				return err // another process wrote first: then nothing was
			}
		} else if err = s.commit(c); err == nil {
			return nil
		}
	}
	return problem.New(problem.StoreOutcomeUnknown, "the disk failed while the database %s was flushed", s.path).
		WithCause(errors.Join(failed, err)).
		WithHint("What the call writes may be stored or not. Check the disk, and look at the run before you repeat the call.")
}

// changeOnce makes the change unless it has been made. Then it writes something else, so that the commit flushes.
func (p *pending) changeOnce(s *Store) func(c *conn) error {
	return func(c *conn) error {
		if p.stored != nil {
			if found, err := p.stored(c); err != nil {
				return err
			} else if found {
				return s.agree(c)
			}
		}
		return p.change(c)
	}
}
