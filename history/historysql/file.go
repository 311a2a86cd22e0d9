package historysql

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// makeFile makes the file and its folder if they are missing, for nobody but the user. An existing file is not opened
// here: closing it would take away the locks that other connections of this process hold on it. Where a link leads to
// nothing yet, the file is made there, but no folder: what is missing may be a disk that is not mounted.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return cannotOpen(path, err)
	}
	target := linkTarget(path)
	f, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist) && target != path:
		return problem.New(problem.StoreUnavailable, "the database %s is a link to %s, whose folder does not exist", path, target).
			WithHint("Make the folder, mount what holds it, or correct the link.")
	case err != nil:
		return cannotOpen(path, err)
	}
	if err := f.Close(); err != nil {
		return cannotOpen(path, err)
	}
	return nil
}

// linkTarget gives the place that a path leads to, also where nothing is there yet. SQLite does not make a file through
// a link, and keeps what stands beside a database beside the target.
func linkTarget(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	const maxLinks = 40 // as systems have it
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
	return path // a circle
}

// refuseOdd refuses what has a name as a file has, and is none: opening a pipe waits for somebody at its other end.
func refuseOdd(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, syscall.ELOOP): // SQLite would not say so
		return cannotOpen(path, err)
	case err != nil:
		return nil // that is for whoever opens it
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
	return problem.New(problem.StoreUnavailable, "%s is %s, and a database is a file", path, what).
		WithHint("Name a file, or a path where there is nothing yet.")
}

func cannotOpen(path string, err error) error {
	if isFull(err) {
		return problem.New(problem.StoreFull, "the database %s cannot be made", path).WithCause(err).WithHint(hintFull)
	}
	return problem.New(problem.StoreUnavailable, "the database %s cannot be opened", path).WithCause(err).
		WithHint("Check the path and its permissions.")
}

// dataSource gives the driver's name of a file. SQLite reads mode: rw, or ro for connections that cannot write.
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
