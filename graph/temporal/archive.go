package temporal

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Archive keeps the records that a run leaves behind when it continues as new.
type Archive interface {
	// Archive stores records of a run, which follow those stored before. Records that are stored already are ignored.
	Archive(ctx context.Context, executionID string, d history.StoredDefinition, records []history.Record) error
	// Archived returns the stored records of a run from a seq on; at most limit of them, unless that is 0.
	Archived(ctx context.Context, executionID string, from int64, limit int) ([]history.Record, error)
}

// FileArchive is an Archive of files in a directory, one for each run: a line of JSON for each record (history.Row). One process writes at a time.
type FileArchive struct {
	dir string
	mu  sync.Mutex
}

// OpenFileArchive returns the archive in a directory, which is created with the first record.
func OpenFileArchive(dir string) *FileArchive { return &FileArchive{dir: dir} }

// archiveHead is the first line of a file.
type archiveHead struct {
	ExecutionID string `json:"execution_id"`
	Definition  source `json:"definition"`
	Hash        string `json:"hash"`
}

func (a *FileArchive) path(executionID string) string {
	sum := sha256.Sum256([]byte(executionID))
	return filepath.Join(a.dir, hex.EncodeToString(sum[:16])+".jsonl")
}

// Archive implements Archive.
func (a *FileArchive) Archive(_ context.Context, executionID string, d history.StoredDefinition, records []history.Record) (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, err := a.read(executionID, 1, 0)
	if err != nil {
		return err
	}
	last := int64(0)
	if len(known) > 0 {
		last = known[len(known)-1].Seq
	}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return unarchived(executionID, err)
	}
	f, err := os.OpenFile(a.path(executionID), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return unarchived(executionID, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var lines []byte
	if torn, err := endsTorn(f); err != nil {
		return unarchived(executionID, err)
	} else if torn {
		lines = []byte("\n")
	}
	add := func(v any) error {
		line, err := json.Marshal(v)
		lines = append(append(lines, line...), '\n')
		return err
	}
	if len(known) == 0 {
		if err := add(archiveHead{executionID, sourceOf(&d), d.Hash}); err != nil {
			return err
		}
	}
	for i := range records {
		if records[i].Seq > last {
			if err := add(records[i].Row(executionID)); err != nil {
				return err
			}
		}
	}
	if _, err := f.Write(lines); err != nil {
		return unarchived(executionID, err)
	}
	if err := f.Sync(); err != nil {
		return unarchived(executionID, err)
	}
	return nil
}

// endsTorn reports whether the last line of a file was not written whole.
func endsTorn(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	var last [1]byte
	_, err = f.ReadAt(last[:], info.Size()-1)
	return last[0] != '\n', err
}

func unarchived(executionID string, err error) error {
	return problem.New(problem.StoreUnavailable, "the records cannot be archived").WithPlace(problem.Place{ExecutionID: executionID}).WithCause(err).
		WithHint("Check the directory of the archive. The run continues once it can be written to.")
}

// Archived implements Archive.
func (a *FileArchive) Archived(_ context.Context, executionID string, from int64, limit int) ([]history.Record, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.read(executionID, from, limit)
}

// read reads records of a file. A line that was not written whole is ignored, and so are the records after it until Archive has written its record
// again.
func (a *FileArchive) read(executionID string, from int64, limit int) (records []history.Record, err error) {
	f, err := os.Open(a.path(executionID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unarchived(executionID, err)
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewReader(f)
	next := int64(0) // the seq of the next record, 0 before the first one
	for limit <= 0 || len(records) < limit {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, unarchived(executionID, err)
		}
		var row history.Row
		if json.Unmarshal(line, &row) != nil || row.Seq == 0 || next > 0 && row.Seq != next {
			continue // the head, a torn line, or a record that was written before
		}
		if next = row.Seq + 1; row.Seq < from {
			continue
		}
		r, err := row.Record(executionID)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}

// StoreArchive is an Archive in a database of the engine, which should hold nothing else: a Runner over it would take its runs for open ones.
type StoreArchive struct{ Store history.Store }

// Archive implements Archive.
func (a StoreArchive) Archive(ctx context.Context, executionID string, d history.StoredDefinition, records []history.Record) error {
	exec, err := a.Store.Execution(ctx, executionID)
	if errors.Is(err, problem.ExecutionNotFound) {
		exec, err = history.Execution{ID: executionID}, nil
	}
	if err != nil {
		return err
	}
	for len(records) > 0 && records[0].Seq <= exec.Seq {
		records = records[1:]
	}
	if len(records) == 0 {
		return nil
	}
	next := exec
	next.ApplyAll(records)
	return a.Store.Append(ctx, history.Batch{
		ExecutionID: executionID, ExpectedSeq: exec.Seq, Records: records, Execution: next, Definition: &d, SetTimers: true,
	})
}

// Archived implements Archive.
func (a StoreArchive) Archived(ctx context.Context, executionID string, from int64, limit int) ([]history.Record, error) {
	records, err := a.Store.Read(ctx, executionID, from, limit)
	if errors.Is(err, problem.ExecutionNotFound) {
		return nil, nil
	}
	for i := range records {
		records[i].Raw = records[i].Text(executionID)
	}
	return records, err
}
