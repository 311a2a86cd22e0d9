package historysql

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// createFile creates a missing file and its folder, readable by the user only. It does not open an existing file, because closing it would
// release the locks of this process's other connections. For a symlink with a missing target it creates the target but no folder: the disk of
// that folder may not be mounted.
func createFile(path string) error {
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return cannotOpen(path, err)
	}
	target := linkTarget(path)
	f, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist) && target != path:
		return problem.New(problem.StoreUnavailable, "the database %s is a symlink to %s, whose folder does not exist", path, target).
			WithHint("Make the folder, mount what holds it, or correct the symlink.")
	case err != nil:
		return cannotOpen(path, err)
	}
	if err := f.Close(); err != nil {
		return cannotOpen(path, err)
	}
	return nil
}

// makeFolder creates a folder and its missing parents, and makes their names durable. SQLite does this only for names inside the folder, so a
// power cut could lose a new folder.
func makeFolder(path string) error {
	switch _, err := os.Stat(path); {
	case err == nil:
		return nil // if it is not a folder, opening the file fails
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(path)
	if err := makeFolder(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	_ = flush(parent) // ignore an unreadable folder
	return nil
}

// linkTarget returns the target path of a symlink, which need not exist. SQLite cannot create a file through a symlink, and keeps the WAL
// beside the target.
func linkTarget(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	const maxLinks = 40 // the usual system limit
	target := path
	for range maxLinks {
		next, err := os.Readlink(target)
		if err != nil {
			return target
		}
		if !filepath.IsAbs(next) {
			folder, err := filepath.EvalSymlinks(filepath.Dir(target))
			if err != nil {
				folder = filepath.Dir(target)
			}
			next = filepath.Join(folder, next)
		}
		target = next
	}
	return path // a symlink loop
}

// rejectNonRegular refuses pipes, sockets and devices: opening a pipe would block until another process opens it.
func rejectNonRegular(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, syscall.ELOOP): // SQLite does not report a symlink loop
		return cannotOpen(path, err)
	case err != nil:
		return nil // opening the file returns the error
	}
	what := ""
	switch mode := info.Mode(); {
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	default:
		return nil
	}
	return problem.New(problem.StoreUnavailable, "%s is %s, not a regular file", path, what).
		WithHint("Name a file, or a path where there is nothing yet.")
}

func cannotOpen(path string, err error) error {
	if isFull(err) {
		return problem.New(problem.StoreFull, "the database %s cannot be created", path).WithCause(err).WithHint(hintFull)
	}
	return problem.New(problem.StoreUnavailable, "the database %s cannot be opened", path).WithCause(err).
		WithHint("Check the path and its permissions.")
}

// dataSource returns the driver's name of a file. SQLite's mode is rw, or ro for read-only connections.
func dataSource(path, mode string, o *Options) string {
	q := url.Values{"mode": {mode}}
	if mode == "ro" {
		q.Set("_busy_timeout", strconv.FormatInt(o.BusyTimeout.Milliseconds(), 10))
		q.Set("_query_only", "1")
	}
	slashed := filepath.ToSlash(path)
	if slashed[0] != '/' {
		slashed = "/" + slashed // a drive letter
	}
	u := url.URL{Scheme: "file", Path: slashed, RawQuery: q.Encode()}
	return u.String()
}

// probeBytes is the size of a probe's write, in bytes. A step of a run may need as much; a smaller write can still fit into the log on a full
// disk.
const probeBytes = 64 << 10

const (
	addProbe  = `INSERT INTO processes (process, expires) VALUES (?1, 0)`
	dropProbe = `DELETE FROM processes WHERE process = ?1`
)

// Probe commits a write; see history.Prober. A row that is added and removed in one transaction is still written to the log.
func (s *Store) Probe(ctx context.Context) error {
	return s.write(ctx, "the database cannot be written", func(c *conn) error {
		name := "probe/" + rand.Text() + strings.Repeat(" ", probeBytes)
		if _, err := c.exec(addProbe, name); err != nil {
			return err
		}
		_, err := c.exec(dropProbe, name)
		return err
	})
}
