// Package catalog keeps the current workflow definitions of a directory, by name, so that they can be listed,
// searched and started without being sent.
//
//	c := catalog.New("/srv/workflows", catalog.Options{Verify: verify, Log: log})
//	for _, w := range c.Look().Workflows { … }     // the current definitions
//	run, err := runner.Start(ctx, graph.StartRequest{DefinitionRef: "refund-approval"}) // c is the Runner's Options.Workflows
//	go c.Watch(ctx)                                // calls the functions of OnChange
//
// The directory is read on use, and only changed files are read. A broken file, which is not a valid definition or is rejected by Verify, is
// reported with the place, and its last good version stays usable until the process ends. The name of a broken file without a good
// version is an error: no older definition runs in its place.
package catalog

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

const (
	// MaxFiles is how many definitions of a folder are read, in the order of their file names.
	MaxFiles = 1000
	// MaxBytes bounds the sum of their texts.
	MaxBytes = 64 << 20
	// PollInterval is how often Watch reads the directory. Polling works where notifications of the system do not: on network file
	// systems, and in volumes of containers.
	PollInterval = 2 * time.Second
)

// Options configure a Catalog. The zero value works.
type Options struct {
	// Verify, unless nil, rejects definitions that must not be run. Who runs a definition asks again: the catalog asks so that a
	// file that is not allowed to run counts as broken.
	Verify func(*definition.Document) error
	// Log gets a warning for each file that breaks, once a change, and a line when it is valid again; nil discards them.
	Log *slog.Logger
}

// Catalog is the definitions of one folder. It is safe for concurrent use.
type Catalog struct {
	folder string
	opts   Options

	mu       sync.Mutex
	files    map[string]*file
	snapshot *Snapshot
	onChange []func(*Snapshot)
}

// New returns the catalog of a directory. The directory is read on use.
func New(folder string, o Options) *Catalog {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Catalog{folder: folder, opts: o, files: map[string]*file{}}
}

// Folder returns the path of the directory.
func (c *Catalog) Folder() string { return c.folder }

// OnChange registers f for each snapshot that differs from the previous one, including the first. It is called by the call that finds the
// change. f must not call the catalog.
func (c *Catalog) OnChange(f func(*Snapshot)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onChange = append(c.onChange, f)
}

// Watch reads the directory every PollInterval until ctx ends.
func (c *Catalog) Watch(ctx context.Context) {
	ticker := time.NewTicker(PollInterval)
	defer ticker.Stop()
	for {
		c.Look()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Look reads the changed files of the directory and returns its current definitions. Subdirectories are not read.
func (c *Catalog) Look() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, err := c.list()
	if err == nil {
		err = c.update(found)
	}
	if !c.changed(err) {
		return c.snapshot
	}
	c.snapshot = newSnapshot(c.folder, c.files, err)
	if err != nil {
		c.opts.Log.Warn("workflow folder read incompletely", "folder", c.folder, "error", err.Error())
	}
	for _, f := range c.onChange {
		f(c.snapshot)
	}
	return c.snapshot
}

// changed reports whether the files, or the error of the folder, differ from the snapshot.
func (c *Catalog) changed(err *problem.Error) bool {
	before := c.snapshot
	if before == nil || (err == nil) != (before.Err == nil) || err != nil && err.Error() != before.Err.Error() || len(c.files) != len(before.files) {
		return true
	}
	for name, f := range c.files {
		if before.files[name] != f.content {
			return true
		}
	}
	return false
}

// list returns the definitions of the folder, by file name. If the folder cannot be read, the snapshot does not change.
func (c *Catalog) list() ([]fs.FileInfo, *problem.Error) {
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		return nil, problem.New(problem.WorkflowNotFound, "cannot read directory %s", c.folder).WithCause(err).
			WithHint("Create the directory, or correct --workflow-dir.")
	}
	var found []fs.FileInfo
	for _, entry := range entries {
		if _, ok := parserOf(entry.Name()); !ok || entry.IsDir() {
			continue
		}
		info, err := os.Stat(filepath.Join(c.folder, entry.Name())) // follows symbolic links
		if err != nil {
			info, err = os.Lstat(filepath.Join(c.folder, entry.Name()))
		}
		if err == nil { // otherwise it was removed after the directory was listed
			found = append(found, named{info, entry.Name()})
		}
	}
	return found, nil
}

// named is the info of a file under the name that it has in the folder.
type named struct {
	fs.FileInfo
	name string
}

func (n named) Name() string { return n.name }

// update brings the files up to date. The error names the first file beyond the limits.
func (c *Catalog) update(found []fs.FileInfo) *problem.Error {
	var left *problem.Error
	read, bytes := map[string]*file{}, int64(0)
	for i, info := range found {
		if bytes += info.Size(); i == MaxFiles || bytes > MaxBytes {
			left = problem.New(problem.ValidationError, "directory %s has more than %d definitions, or more than %d MiB of them: %s and later files are ignored",
				c.folder, MaxFiles, MaxBytes>>20, info.Name()).WithHint("Remove unused files from the directory.")
			break
		}
		before := c.files[info.Name()]
		now := c.read(info, before)
		c.report(before, now)
		read[info.Name()] = now
	}
	c.files = read
	return left
}

// report logs that a file has become invalid, or valid again.
func (c *Catalog) report(before, now *file) {
	switch {
	case before != nil && before.content == now.content:
	case now.broken != nil:
		kept := "no valid version"
		if now.good != nil {
			kept = "last good version " + now.good.Version
		}
		about := []any{"file", filepath.Join(c.folder, now.broken.File), "error", now.broken.Text(), "kept", kept}
		if hint := now.broken.First().Hint; hint != "" {
			about = append(about, "hint", hint)
		}
		c.opts.Log.Warn("workflow file invalid", about...)
	case before != nil && before.broken != nil:
		c.opts.Log.Info("workflow file valid again", "file", filepath.Join(c.folder, now.good.File))
	}
}

// Documents returns all valid definitions of the directory.
func (c *Catalog) Documents() []*definition.Document {
	var list []*definition.Document
	for _, w := range c.Look().Workflows {
		list = append(list, w.Document())
	}
	return slices.Clip(list)
}
