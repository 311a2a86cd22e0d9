package historysql

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// makeFile makes the file and its folder if they are missing, for nobody but the user. An existing file is not opened
// here: closing it would take away the locks that other connections of this process hold on it.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return cannotOpen(path, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return cannotOpen(path, err)
	}
	if err := f.Close(); err != nil {
		return cannotOpen(path, err)
	}
	return nil
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
