// Package regularfile opens and replaces files that a user has named. A file is looked at after it was opened, so that nothing can be put into its place
// between the two, and opening it never waits: a pipe, a device and a folder are errors.
//
//	text, err := regularfile.Read("agents.json", 16<<20)
package regularfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// ErrNotRegular is the cause of an error about a directory, device, pipe or socket.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a regular file for reading. Its errors are of type *fs.PathError.
func Open(name string) (*os.File, fs.FileInfo, error) {
	return opened(os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0))
}

// OpenIn is Open for a file below a root.
func OpenIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	return opened(root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0))
}

// opened returns an opened file with its FileInfo, or closes it.
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

// ErrChanged is the cause of an error for a file that is not as it was read.
var ErrChanged = errors.New("it was changed by another program meanwhile")

// Replacement gives a file another content.
type Replacement struct {
	// Name is the name of the file, which must not be a symbolic link.
	Name string
	// Was is the content that Text is based on; nil without a file.
	Was []byte
	// Text is the new content; nil removes the file.
	Text []byte
	// Mode holds the permissions that the file has then.
	Mode fs.FileMode
}

// Replace locks the file and replaces it, in one step: whatever happens, it has its old content or the new one. A file that is not as it
// was is left alone.
func (r *Replacement) Replace() error {
	unlock, err := Lock(r.Name)
	if err != nil {
		return err
	}
	defer unlock()
	return r.ReplaceLocked()
}

// ReplaceLocked is Replace for a caller who has locked the file.
func (r *Replacement) ReplaceLocked() error {
	if err := r.unchanged(); err != nil {
		return err
	}
	if r.Text == nil {
		return os.Remove(r.Name)
	}
	temporary, err := os.CreateTemp(filepath.Dir(r.Name), filepath.Base(r.Name)+".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // fails once it has its name
	_, err = temporary.Write(r.Text)
	if err = errors.Join(err, temporary.Chmod(r.Mode), temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	if err := r.unchanged(); err != nil { // writing took its time, and not everybody asks for the lock
		return err
	}
	return os.Rename(temporary.Name(), r.Name)
}

// unchanged returns an error unless the file is as it was.
func (r *Replacement) unchanged() error {
	now, err := Read(r.Name, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		now = nil
	case err != nil:
		return err
	case now == nil:
		now = []byte{}
	}
	if (now == nil) != (r.Was == nil) || !bytes.Equal(now, r.Was) {
		return &fs.PathError{Op: "write", Path: r.Name, Err: ErrChanged}
	}
	return nil
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
