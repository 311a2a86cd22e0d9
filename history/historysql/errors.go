package historysql

import (
	"context"
	"errors"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// primaryCode returns SQLite's primary result code of an error, 0 for other errors.
func primaryCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// isFull reports whether the disk is full. SQLite has a code for this only when it writes to the database or its WAL. If it cannot extend the
// shared-memory file, which every connection in WAL mode needs, it reports a failed resize; on a working disk that also means a full disk.
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

// isDuplicate reports whether an insert violated a key.
func isDuplicate(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY || e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE)
}

const hintFull = "The disk is full. Nothing was written; free some space and try again. " +
	"If db prune has no room to delete runs either, see \"Cleaning a full disk\" in docs/database.md."

const hintFileDamaged = "The file is damaged. Restore it from a backup; it was not changed."

// columnError is a column of an unexpected type. Only damage to the file can cause it.
type columnError struct{ cause error }

func (e *columnError) Error() string { return e.cause.Error() }

// scanFailure distinguishes a row of unexpected types from a failure of the query.
func scanFailure(ctx context.Context, err error) error {
	if _, ok := problem.As(err); ok || err == nil || ctx.Err() != nil || primaryCode(err) != 0 {
		return err
	}
	return &columnError{err}
}

// failure adds a code and a hint to an error of the driver. It returns an error with a code unchanged.
func failure(doing string, err error) error {
	if _, ok := problem.As(err); ok || err == nil {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return problem.New(problem.Internal, "%s: the call was cancelled", doing).WithCause(err)
	}
	code, hint := problem.Internal, ""
	if _, ok := errors.AsType[*columnError](err); ok {
		code, hint = problem.HistoryCorrupt, hintFileDamaged
	}
	switch primaryCode(err) {
	case sqlite3.SQLITE_NOTADB:
		code, hint = problem.HistoryCorrupt, "The file is not a database. Name another file; this one was not changed."
	case sqlite3.SQLITE_CORRUPT:
		code, hint = problem.HistoryCorrupt, hintFileDamaged
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		code, hint = problem.StoreLocked, "Another process keeps the database locked. Try again."
	case sqlite3.SQLITE_READONLY:
		code, hint = problem.StoreReadOnly, "The database is read-only. Check the permissions of the file and its directory, and the mount options of the disk."
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		code, hint = problem.StoreUnavailable, "Check the path and its permissions."
	case sqlite3.SQLITE_IOERR:
		code, hint = problem.StoreUnavailable, "The disk failed to read or write. Check the disk, quotas and limits of file sizes, then try again."
	}
	if isFull(err) {
		code, hint = problem.StoreFull, hintFull
	}
	e := problem.New(code, "%s", doing).WithCause(err)
	e.Hint = hint
	return e
}

var errReadOnly = problem.New(problem.StoreReadOnly, "the database was opened read-only")

// isUnreadable reports whether an error concerns the rows of one run, not the file.
func isUnreadable(err error) bool {
	e, ok := problem.As(err)
	return ok && e.At.ExecutionID != "" && (e.Code == problem.HistoryCorrupt || e.Code == problem.HistoryNewer)
}
