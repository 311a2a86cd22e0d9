package historysql

import (
	"context"
	"errors"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// primaryCode is SQLite's result code of an error without its extension, 0 if the error is not SQLite's.
func primaryCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// isFull reports whether there was no room. SQLite says so only where it writes to the file and its log; of the lock file that
// everybody makes who opens a file in log mode it says that it could not be given its size, which a disk that works does
// wherever it has room.
func isFull(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == sqlite3.SQLITE_FULL || e.Code() == sqlite3.SQLITE_IOERR_SHMSIZE)
}

func isBusy(err error) bool {
	c := primaryCode(err)
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// isDuplicate reports whether an insert met a row with the same key.
func isDuplicate(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY || e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE)
}

const hintFull = "The disk is full. Nothing was written; free some space and try again."

const hintFileDamaged = "The file is damaged. Restore it from a copy; it is left as it is."

// columnError is a column of another type than is ever stored in it, which only damage can bring about.
type columnError struct{ cause error }

func (e *columnError) Error() string { return e.cause.Error() }

// scanFailure tells what rows of a query cannot be taken for from what ended the query.
func scanFailure(ctx context.Context, err error) error {
	if _, ok := problem.As(err); ok || ctx.Err() != nil || primaryCode(err) != 0 {
		return err
	}
	return &columnError{err}
}

// failure gives an error of the driver the code and the advice that a caller needs. Errors that have one pass.
func failure(doing string, err error) error {
	if _, ok := problem.As(err); ok || err == nil {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return problem.New(problem.Internal, "%s: the call was given up", doing).WithCause(err)
	}
	code, hint := problem.Internal, ""
	if _, ok := errors.AsType[*columnError](err); ok {
		code, hint = problem.HistoryCorrupt, hintFileDamaged
	}
	switch primaryCode(err) {
	case sqlite3.SQLITE_NOTADB:
		code, hint = problem.HistoryCorrupt, "The file is no database. Name another one; this one is left as it is."
	case sqlite3.SQLITE_CORRUPT:
		code, hint = problem.HistoryCorrupt, hintFileDamaged
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		code, hint = problem.StoreLocked, "Another process has kept the database locked. Try again."
	case sqlite3.SQLITE_READONLY:
		code, hint = problem.StoreReadOnly, "The database cannot be written to. Check its permissions, those of its folder, and how the disk is mounted."
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		code, hint = problem.StoreUnavailable, "Check the path and its permissions."
	case sqlite3.SQLITE_IOERR:
		code, hint = problem.StoreUnavailable, "The disk does not read or write. Look at it, and at quotas and limits of the size of files; then try again."
	}
	if isFull(err) {
		code, hint = problem.StoreFull, hintFull
	}
	e := problem.New(code, "%s", doing).WithCause(err)
	e.Hint = hint
	return e
}

var errReadOnly = problem.New(problem.StoreReadOnly, "the database was opened for reading only")

// isUnreadable tells a run whose rows cannot be read from a file that cannot be.
func isUnreadable(err error) bool {
	e, ok := problem.As(err)
	return ok && e.At.ExecutionID != "" && (e.Code == problem.HistoryCorrupt || e.Code == problem.HistoryNewer)
}
