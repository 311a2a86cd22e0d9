package mcphost

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// Content is a file as it was read.
type Content struct {
	// Path is the file's name, target the end of its symbolic links.
	Path, target string
	Text         []byte
	// Exists says that there is a file.
	Exists bool
	mode   fs.FileMode
}

// Read reads a file, which need not exist.
func Read(path string) (Content, error) {
	c := Content{Path: path, mode: 0o600}
	var err error
	if c.target, err = follow(path); err != nil {
		return c, err
	}
	f, info, err := regularfile.Open(c.target)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		defer f.Close()
		c.Exists, c.mode = true, info.Mode().Perm()
		c.Text, err = regularfile.ReadAll(f, 0)
	}
	if err != nil {
		return c, problem.New(problem.HostFileInvalid, "cannot read %s: %v", path, err).
			WithHint("Check the file and its permissions, then try again.")
	}
	return c, nil
}

// follow returns the file that symbolic links lead to, whether it exists or not.
func follow(path string) (string, error) {
	for range 40 {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return path, nil
		}
		to, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", problem.New(problem.HostFileInvalid, "%s: the symbolic links form a loop", path).WithHint("Correct the links, then try again.")
}

// copySuffix follows the name of a file in those of its copies; the time follows it.
const copySuffix = ".bak-"

// Earlier returns the copies that Write has made of a file, the newest first.
func (c Content) Earlier() (texts [][]byte) {
	paths, err := filepath.Glob(globbed(c.target) + copySuffix + "*")
	if err != nil {
		return nil
	}
	slices.Sort(paths)
	slices.Reverse(paths)
	for _, path := range paths {
		if text, err := regularfile.Read(path, 0); err == nil {
			texts = append(texts, append([]byte{}, text...))
		}
	}
	return texts
}

// globbed is a name that Glob takes literally.
func globbed(path string) string {
	var out []byte
	for i := range len(path) {
		switch path[i] {
		case '*', '?', '[':
			out = append(out, '[', path[i], ']')
		default:
			out = append(out, path[i])
		}
	}
	return string(out)
}

// Edit changes a file, again if another program changes it meanwhile. Concurrent calls wait for their turn. change returns the new text of
// the file, nil for no change. An existing file is backed up beside itself; the path of the backup is returned.
func Edit(path string, now time.Time, change func(Content) ([]byte, error)) (saved string, err error) {
	target, err := follow(path)
	if err != nil {
		return "", err
	}
	unlock, err := lock(target)
	if err != nil {
		return "", writeFailed(path, err)
	}
	defer unlock()
	for range maxEdits {
		var c Content
		if c, err = Read(path); err != nil {
			return "", err
		}
		text, err := change(c)
		if err != nil || c.Exists == (text != nil) && bytes.Equal(text, c.Text) {
			return "", err
		}
		if saved, err = c.write(text, now); err == nil || !errors.Is(err, regularfile.ErrChanged) {
			return saved, writeFailed(path, err)
		}
	}
	return "", writeFailed(path, regularfile.ErrChanged)
}

// maxEdits bounds how often an edit is repeated because another program changed the file meanwhile.
const maxEdits = 5

// lock locks a file, and creates its directory.
func lock(target string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return nil, err
	}
	return regularfile.Lock(target)
}

// Write replaces the file's text in one step, or removes the file where text is nil. A file that exists is copied beside it
// first; the copy's path is returned. A file that has been changed since it was read is left alone.
func (c Content) Write(text []byte, now time.Time) (saved string, err error) {
	unlock, err := lock(c.target)
	if err != nil {
		return "", writeFailed(c.Path, err)
	}
	defer unlock()
	saved, err = c.write(text, now)
	return saved, writeFailed(c.Path, err)
}

// write is Write while the file is locked.
func (c Content) write(text []byte, now time.Time) (saved string, err error) {
	if target, err := follow(c.Path); err != nil || target != c.target {
		return "", cmp.Or(err, regularfile.ErrChanged)
	}
	r := regularfile.Replacement{Name: c.target, Text: text, Mode: c.mode}
	if c.Exists {
		r.Was = append([]byte{}, c.Text...)
		if saved, err = c.save(now); err != nil {
			return "", err
		}
	}
	if err = r.ReplaceLocked(); err != nil && saved != "" {
		_ = os.Remove(saved) // the file itself still exists
		saved = ""
	}
	return saved, err
}

// writeFailed returns the error for a file that was not written; nil for nil.
func writeFailed(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, regularfile.ErrChanged):
		return problem.New(problem.HostFileChanged, "another program changed %s", path).
			WithHint("Try again; close the host first if it writes the file all the time.")
	case errors.Is(err, regularfile.ErrLocked):
		return problem.New(problem.HostFileChanged, "another process is changing %s: %v", path, err).
			WithHint("Wait for the other process, or end it, then try again. Nothing was written.")
	}
	return problem.New(problem.HostFileInvalid, "cannot write %s: %v", path, err).
		WithHint("Check the permissions of the directory and the free space, then try again. The file was not changed.")
}

// save copies the file beside it, with its permissions, under a name that is free.
func (c Content) save(now time.Time) (string, error) {
	name := c.target + copySuffix + now.UTC().Format("20060102T150405Z")
	for i := 2; ; i++ {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, c.mode)
		if errors.Is(err, fs.ErrExist) && i < 100 {
			name = fmt.Sprintf("%s%s%s-%02d", c.target, copySuffix, now.UTC().Format("20060102T150405Z"), i)
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = file.Write(c.Text)
		return name, errors.Join(err, file.Close())
	}
}
