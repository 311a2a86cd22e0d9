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
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// refuseLost refuses what is no file (refuseOdd), and a file that has lost its content, or is gone, while the log beside
// it has not. SQLite takes such a log for one that another file has left, and deletes it as soon as the file is read. So
// this comes before each connection.
//
// A file that another process is just making is never taken for one: SQLite has written to the file, and flushed it, before
// anything stands in a log of it, and the log is looked at first. The journal of a file's very first transaction stands
// beside an empty file, and says itself that the file was empty when it began.
func refuseLost(path string) error {
	if err := refuseOdd(path); err != nil {
		return err
	}
	log := unfinishedLog(path)
	if log == "" {
		return nil
	}
	what, anew := "is empty", fmt.Sprintf("To begin a new one instead, take %s away too.", filepath.Base(path))
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		what, anew = "is gone", "Without the log, a new one is begun there."
	case err != nil || info.Size() > maxBlank:
		return nil
	}
	return problem.New(problem.HistoryCorrupt, "the database %s %s, and its log %s is not", path, what, log).
		WithHint("Stop what uses the database and move the log to another folder: it holds the newest steps and is left as it is. "+
			"Then restore the database from a copy. %s", anew)
}

// maxBlank is the size up to which SQLite takes a file for one without content.
const maxBlank = 1

// LeftLog reports whether a log with something in it stands at the place of a database, whose newest steps it holds. Where
// the database itself is gone, there was one, and Open refuses to begin another beside its log.
func LeftLog(path string) bool { return unfinishedLog(path) != "" }

// unfinishedLog names what stands beside a file and belongs to its content, "" if nothing does: a log with steps in it, or
// the journal of a transaction that did not end.
func unfinishedLog(path string) string {
	if log := besideFile(path, walSuffix); hasContent(log) {
		return log
	}
	if journal := besideFile(path, journalSuffix); restoresPages(journal) {
		return journal
	}
	return ""
}

const (
	walSuffix     = "-wal"
	journalSuffix = "-journal"
)

// besideFile names a file that SQLite keeps beside a database: beside what a link leads to, not beside the link.
func besideFile(path, suffix string) string {
	return linkTarget(path) + suffix
}

// hasContent reports whether there is such a file and it is not empty.
func hasContent(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

// journalMagic is what a journal begins with that has not been committed (sqlite.org/fileformat.html, 3).
var journalMagic = []byte{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7}

// restoresPages reports whether a file is the journal of a transaction that did not end, on a file that had pages before.
func restoresPages(journal string) bool {
	f, err := os.Open(journal)
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

// refuseBlank refuses a file that holds nothing to those that do not begin runs: one that held runs once is told by nothing
// from one that is new.
func refuseBlank(path string) error {
	return problem.New(problem.HistoryCorrupt, "the database %s is empty", path).
		WithHint("If it held runs, restore it from a copy. If it is new, begin a run, import one, or start a server or worker: they fill it.")
}

// awaitContent looks at a file and refuses it if it holds nothing. Another process may just be making it, which takes some
// milliseconds.
func (s *Store) awaitContent(ctx context.Context, look func() (identity, error)) (identity, error) {
	const making, pause = 250 * time.Millisecond, 5 * time.Millisecond
	for end := time.Now().Add(making); ; {
		id, err := look()
		if err != nil || !id.blank() {
			return id, err
		}
		if !time.Now().Before(end) {
			return id, refuseBlank(s.path)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return id, context.Cause(ctx)
		}
	}
}
