// Package regularfile opens and replaces files that a user has named. A file is looked at after it was opened, so that nothing can be put into its place
// between the two, and opening it never waits: a pipe, a device and a folder are errors.
//
//	text, err := regularfile.Read("agents.json", 16<<20)
package regularfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// ErrNotRegular is the cause of an error for what is not a regular file.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a regular file for reading. Its errors are of type *fs.PathError.
func Open(name string) (*os.File, fs.FileInfo, error) {
	return opened(os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0))
}

// OpenIn is Open for a file below a root.
func OpenIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	return opened(root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0))
}

// opened returns a file that was opened, with what it is, or closes it.
func opened(f *os.File, err error) (*os.File, fs.FileInfo, error) {
	if err != nil {
		if errors.Is(err, syscall.ENXIO) { // a socket, or a device that is not there
			err = notRegular(err.(*fs.PathError).Path, fs.ModeIrregular)
		}
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(f.Name(), info.Mode())
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, nil, err
	}
	return f, info, nil
}

func notRegular(name string, mode fs.FileMode) error {
	kind := "a device or a socket"
	switch {
	case mode.IsDir():
		kind = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	}
	return &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w (%s)", ErrNotRegular, kind)}
}

// Read returns the content of a regular file. A file of more than limit bytes is an error, unless limit is 0.
func Read(name string, limit int64) ([]byte, error) {
	f, _, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, limit)
}

// ReadAll reads the rest of a file. More than limit bytes are an error, unless limit is 0.
func ReadAll(f *os.File, limit int64) ([]byte, error) {
	if limit == 0 {
		return io.ReadAll(f)
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		return nil, &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("larger than %d bytes", limit)}
	}
	return text, err
}

// Replace gives a file another content, in one step: whatever happens, the file has its old content or the new one. It has
// these permissions then.
func Replace(name string, text []byte, mode fs.FileMode) error {
	temporary, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // fails once it has its name
	_, err = temporary.Write(text)
	if err = errors.Join(err, temporary.Chmod(mode), temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), name)
}

// FS is the folder of that path, whose files are opened by Open.
type FS string

// Open implements fs.FS. Folders can be opened, as fs.ReadDir needs.
func (folder FS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if path.Clean(name) == "." {
		return os.DirFS(string(folder)).Open(name)
	}
	f, err := os.OpenFile(filepath.Join(string(folder), filepath.FromSlash(name)), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		if info, failed := f.Stat(); failed == nil && info.IsDir() {
			return f, nil
		}
	}
	f, _, err = opened(f, err)
	if err != nil {
		return nil, err
	}
	return f, nil
}
