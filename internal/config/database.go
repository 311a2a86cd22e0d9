package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
)

// databaseName is the name of the default database.
const databaseName = "runs.db"

// defaultStorePath finds the default database. A shell and a host of the same user must find the same file, although hosts
// often start servers without XDG_DATA_HOME:
//
//  1. the file in the data folder, if it is there;
//  2. else the file below XDG_DATA_HOME, where earlier versions kept it, if it is there;
//  3. else the file that a note in the data folder names, which a process that used rule 2 left for those that cannot;
//  4. else a new file in the data folder.
func (c *Config) defaultStorePath(env Environment) error {
	var home, xdg string
	if folder := env.dataFolder(); folder != "" {
		home = filepath.Join(folder, databaseName)
	}
	if folder := env.xdgFolder(); folder != "" {
		xdg = filepath.Join(folder, databaseName)
	}
	if home == "" && xdg == "" {
		return problem.New(problem.UsageError, "no directory for the database: the home directory is unknown").
			WithHint("Set HOME, name a file with --db or %s, or choose --store memory.", envname.StorePath)
	}
	noted, err := readNote(home)
	if err != nil {
		return err
	}
	switch {
	case home == "":
		c.StorePath = xdg
	case present(home):
		c.StorePath = home
		for _, other := range []string{xdg, noted} {
			if other != "" && present(other) && !sameFile(other, home) {
				c.OtherStorePath = other
			}
		}
	case xdg != "" && present(xdg):
		c.StorePath = xdg
		if noted != xdg {
			c.note = home
		}
	case noted == "":
		c.StorePath = home
	case present(noted):
		c.StorePath = noted
	default:
		return problem.New(problem.UsageError, "database %s not found, but %s names it", noted, home+noteSuffix).
			WithHint("Restore the database; or, to start with an empty one, delete %s.", home+noteSuffix)
	}
	if c.OtherStorePath != "" {
		env.notes.add("two databases found: %s is used, %s is not; see workflows-engine doctor to merge their runs",
			c.StorePath, c.OtherStorePath)
	}
	return nil
}

// present reports whether a database, or a leftover WAL of one, exists.
func present(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist) || historysql.LeftoverWAL(path)
}

// sameFile reports whether two paths lead to one file.
func sameFile(a, b string) bool {
	left, errA := os.Stat(a)
	right, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(left, right)
}

// noteSuffix ends the name of the note beside where the database would be.
const noteSuffix = ".location"

// readNote returns the path in the note, "" without one.
func readNote(home string) (string, error) {
	if home == "" {
		return "", nil
	}
	text, err := readSettings(home + noteSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	path := strings.TrimSpace(string(text))
	if err == nil && !filepath.IsAbs(path) {
		err = fmt.Errorf("%q must be an absolute path", path)
	}
	if err != nil {
		return "", problem.New(problem.UsageError, "cannot read the database location in %s: %v", home+noteSuffix, err).
			WithHint("Write the absolute path of the database into it, or delete it.")
	}
	return path, nil
}

// LeaveNote writes the location of the database into the data directory, for processes without XDG_DATA_HOME. It does nothing if they find
// the database without a note.
func (c *Config) LeaveNote() error {
	if c.note == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.note), 0o700); err != nil {
		return err
	}
	return os.WriteFile(c.note+noteSuffix, []byte(c.StorePath+"\n"), 0o600)
}
