package temporal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// FileSideStore is a SideStore in a directory that all processes of one machine can use.
type FileSideStore struct{ dir string }

// OpenFileSideStore opens the store in a directory, which it creates.
func OpenFileSideStore(dir string) (*FileSideStore, error) {
	for _, d := range []string{"blobs", "journals", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, sideFailure(err)
		}
	}
	return &FileSideStore{dir}, nil
}

func sideFailure(err error) error {
	return problem.New(problem.StoreUnavailable, "the side store cannot be used").WithCause(err).
		WithHint("Check its directory or database. Runs continue once it works again.")
}

// errAppended is the error of an append to a journal that has other entries by now.
func errAppended(attempt string) error {
	return problem.New(problem.HistoryConflict, "another worker has written to the journal of attempt %s", attempt)
}

// write writes a file that must not exist, whole or not at all.
func (s *FileSideStore) write(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Join(s.dir, "tmp"), "new")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}

func (s *FileSideStore) blob(hash string) string { return filepath.Join(s.dir, "blobs", hash) }

// PutBlob implements SideStore.
func (s *FileSideStore) PutBlob(_ context.Context, hash string, value []byte) error {
	if _, err := os.Stat(s.blob(hash)); err == nil {
		return nil
	}
	if err := s.write(s.blob(hash), value); err != nil && !errors.Is(err, fs.ErrExist) {
		return sideFailure(err)
	}
	return nil
}

// GetBlob implements SideStore.
func (s *FileSideStore) GetBlob(_ context.Context, hash string) ([]byte, error) {
	value, err := os.ReadFile(s.blob(hash))
	if err != nil {
		return nil, sideFailure(err)
	}
	return value, nil
}

// journal returns the directory of a journal: a file for each append, named by the number of entries before.
func (s *FileSideStore) journal(attempt string) string {
	sum := sha256.Sum256([]byte(attempt))
	return filepath.Join(s.dir, "journals", hex.EncodeToString(sum[:16]))
}

// AppendJournal implements SideStore.
func (s *FileSideStore) AppendJournal(ctx context.Context, attempt string, count int, entries [][]byte) error {
	known, err := s.Journal(ctx, attempt)
	switch {
	case err != nil:
		return err
	case len(known) != count:
		return errAppended(attempt)
	}
	text, err := json.Marshal(entries)
	if err != nil {
		return err
	}
	dir := s.journal(attempt)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return sideFailure(err)
	}
	err = s.write(filepath.Join(dir, strconv.Itoa(count)), text)
	switch {
	case errors.Is(err, fs.ErrExist):
		return errAppended(attempt)
	case err != nil:
		return sideFailure(err)
	}
	return nil
}

// Journal implements SideStore.
func (s *FileSideStore) Journal(_ context.Context, attempt string) (entries [][]byte, err error) {
	for {
		text, err := os.ReadFile(filepath.Join(s.journal(attempt), strconv.Itoa(len(entries))))
		if errors.Is(err, fs.ErrNotExist) {
			return entries, nil
		}
		if err != nil {
			return nil, sideFailure(err)
		}
		var more [][]byte
		if err := json.Unmarshal(bytes.TrimSpace(text), &more); err != nil {
			return nil, sideFailure(err)
		}
		if len(more) == 0 {
			return entries, nil
		}
		entries = append(entries, more...)
	}
}

// Close implements SideStore.
func (s *FileSideStore) Close() error { return nil }
