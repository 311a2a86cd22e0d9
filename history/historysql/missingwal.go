package historysql

import (
	"encoding/binary"
	"io"
	"path/filepath"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

const shmSuffix = "-shm"

// rejectMissingWAL refuses a database whose WAL is gone although it held steps that the database does not. SQLite would begin
// another one, and nobody would notice. A process that closes in order removes the index of the WAL, the -shm file, before the WAL
// itself; a crash leaves both, and the index says how far the WAL went. Where a file system does not keep that order, a power cut just
// after such a close may leave the index alone: the file is then refused although it holds everything.
//
// Another process may be closing the database at this very moment, so what is suspicious is looked at again.
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
		WithHint("Stop what uses the database and put %s back beside it, or restore a backup. To go on without those steps, which may then "+
			"be done again, remove %s.", filepath.Base(wal), filepath.Base(shm))
}

// unsavedFrames returns how many frames of a WAL had not been copied to the database, by its index (sqlite.org/walformat.html, 2.1):
// the last valid frame, and at 96 how many have been copied, both in the byte order of the machine.
func unsavedFrames(index string) uint32 {
	f, _, err := regularfile.Open(index)
	if err != nil {
		return 0
	}
	defer f.Close()
	var head [100]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return 0
	}
	last, copied := binary.NativeEndian.Uint32(head[16:]), binary.NativeEndian.Uint32(head[96:])
	if copied >= last {
		return 0
	}
	return last - copied
}
