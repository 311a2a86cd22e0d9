package historysql

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// rejectOrphanedWAL refuses a file that is not regular (rejectNonRegular), a database that lacks its WAL (rejectMissingWAL), and an empty or
// missing database beside a WAL with content. SQLite assumes that such a WAL belongs to another file, and deletes it on the first read. So
// this check comes before each connection.
//
// A database that another process is just creating is never refused: SQLite writes and flushes the database before its WAL has content, and
// the WAL is checked first. The rollback journal of the first transaction of a file is beside an empty file, and records that the file was
// empty.
func rejectOrphanedWAL(path string) error {
	if err := rejectNonRegular(path); err != nil {
		return err
	}
	journal := leftoverJournal(path)
	if journal == "" {
		return rejectMissingWAL(path)
	}
	what, anew := "is empty", fmt.Sprintf("To begin a new database instead, remove %s too.", filepath.Base(path))
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		what, anew = "is missing", "Or begin a new database there."
	case err != nil || info.Size() > maxBlankSize:
		return nil
	}
	return problem.New(problem.HistoryCorrupt, "the database %s %s, but %s beside it has content", path, what, journal).
		WithHint("Stop what uses the database and move %s to another folder: it holds the newest steps and was not changed. "+
			"Then restore the database from a backup. %s", filepath.Base(journal), anew)
}

// maxBlankSize is the largest file, in bytes, that SQLite treats as empty.
const maxBlankSize = 1

// LeftoverWAL reports whether a WAL or a hot rollback journal with content is beside the path of a database. If the database is missing, it
// existed once, and Open refuses to create a new one.
func LeftoverWAL(path string) bool { return leftoverJournal(path) != "" }

// leftoverJournal returns the path of the file beside a database that holds part of its content: a WAL with content, or the rollback journal
// of an unfinished transaction. It returns "" without such a file.
func leftoverJournal(path string) string {
	if journal := siblingFile(path, walSuffix); hasContent(journal) {
		return journal
	}
	if journal := siblingFile(path, journalSuffix); restoresPages(journal) {
		return journal
	}
	return ""
}

const (
	walSuffix     = "-wal"
	journalSuffix = "-journal"
)

// siblingFile returns the path of a file that SQLite keeps beside a database. For a symlink that is beside its target.
func siblingFile(path, suffix string) string {
	return linkTarget(path) + suffix
}

// hasContent reports whether a file exists and is not empty.
func hasContent(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

// journalMagic starts a journal that was not committed (sqlite.org/fileformat.html, 3).
var journalMagic = []byte{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7}

// restoresPages reports whether a file is the rollback journal of an unfinished transaction on a file that had pages before.
func restoresPages(journal string) bool {
	f, _, err := regularfile.Open(journal)
	if err != nil {
		return false
	}
	defer f.Close()
	// The magic number, the number of records, a nonce, and the size of the file in pages when the transaction began.
	var head [20]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return false
	}
	return bytes.HasPrefix(head[:], journalMagic) && binary.BigEndian.Uint32(head[16:]) > 0
}

// rejectBlank returns the error for callers that do not begin runs: an empty file may once have held runs.
func rejectBlank(path string) error {
	return problem.New(problem.HistoryCorrupt, "the database %s is empty", path).
		WithHint("If it held runs, restore it from a backup. If it is new, begin a run, import one, or start a server or worker: they fill it.")
}

// awaitContent identifies a file and refuses an empty one, after a short wait: another process may be creating it, which takes some
// milliseconds.
func (s *Store) awaitContent(ctx context.Context, look func() (identity, error)) (identity, error) {
	const making, pause = 250 * time.Millisecond, 5 * time.Millisecond
	for end := time.Now().Add(making); ; {
		id, err := look()
		if err != nil || !id.blank() {
			return id, err
		}
		if !time.Now().Before(end) {
			return id, rejectBlank(s.path)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return id, context.Cause(ctx)
		}
	}
}

const shmSuffix = "-shm"

// rejectMissingWAL refuses a database whose WAL is gone although the WAL held steps that are not in the database. SQLite would silently begin
// a new WAL. A process that closes in order removes the index of the WAL, the -shm file, before the WAL itself. A crash leaves both, and the
// index records the length of the WAL. On a file system that does not keep that order, a power cut just after such a close may leave the
// index alone; the file is then refused although it is complete.
//
// Another process may be closing the database at this moment, so a suspicious file is checked again.
func rejectMissingWAL(path string) error {
	const looks, pause = 3, 5 * time.Millisecond
	for range looks {
		if unsavedFrames(siblingFile(path, shmSuffix)) == 0 || hasContent(siblingFile(path, walSuffix)) {
			return nil
		}
		time.Sleep(pause)
	}
	wal, shm := siblingFile(path, walSuffix), siblingFile(path, shmSuffix)
	return problem.New(problem.HistoryCorrupt, "the database %s lacks its newest steps: its WAL %s is missing", path, wal).
		WithHint("Stop the processes that use the database and put %s back beside it, or restore a backup. To continue without those steps, which may then "+
			"be done again, remove %s.", filepath.Base(wal), filepath.Base(shm))
}

// unsavedFrames returns the number of WAL frames not yet copied to the database, from the WAL's index (sqlite.org/walformat.html, 2.1): at 16
// the last valid frame, at 96 the number of copied frames, both in the machine's byte order.
func unsavedFrames(index string) uint32 {
	var head [100]byte
	if err := indexes.read(index, head[:]); err != nil {
		return 0
	}
	last, copied := binary.NativeEndian.Uint32(head[16:]), binary.NativeEndian.Uint32(head[96:])
	if copied >= last {
		return 0
	}
	return last - copied
}

// indexFiles are the index files that were read. They stay open until they are deleted: the end of any descriptor of a file ends all locks of the
// process on it (fcntl(2)), those of SQLite too. Other processes would then treat the index as abandoned and truncate it, and every access
// of this process to the file would fail.
type indexFiles struct {
	mu   sync.Mutex
	open map[string]*os.File
}

var indexes = indexFiles{open: map[string]*os.File{}}

// read reads the beginning of an index file.
func (x *indexFiles) read(path string, into []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closeDeleted()
	f := x.open[path]
	if f == nil {
		var err error
		if f, _, err = regularfile.Open(path); err != nil {
			return err
		}
		if runtime.GOOS == "windows" { // locks belong to the descriptor there, and an open file cannot be deleted
			defer f.Close()
		} else {
			x.open[path] = f
		}
	}
	_, err := f.ReadAt(into, 0)
	return err
}

// closeDeleted closes the files that no longer have their names.
func (x *indexFiles) closeDeleted() {
	for path, f := range x.open {
		now, err := os.Stat(path)
		if read, failed := f.Stat(); err != nil || failed != nil || !os.SameFile(now, read) {
			_ = f.Close()
			delete(x.open, path)
		}
	}
}
