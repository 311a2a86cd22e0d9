package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/fleet"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

// littleSpace is the free space, in bytes, below which a large run may not fit.
const littleSpace = 100 << 20

// disk describes the file system of a directory, as far as the system reports it.
type disk struct {
	known bool
	free  uint64
	// network is the name of a network file system, "" for a local one.
	network string
	// readOnly is set if the user cannot write to the directory.
	readOnly bool
}

// contents counts the runs of a database.
type contents struct {
	runs   int64
	newest time.Time
	from   int
	to     int
	// overdue and orphaned count the runs without an owner: with an overdue timer, and after the end of their owner.
	overdue, orphaned int
	// since is when the first of the overdue timers was due.
	since time.Time
	// fleet is the live processes, and the lanes of runs that wait for one.
	fleet fleet.Fleet
}

func (c contents) String() string {
	if c.runs == 0 {
		return "no runs"
	}
	return runs(int(c.runs)) + ", newest change " + c.newest.UTC().Format(time.RFC3339)
}

// count reads a database without changing it.
func count(ctx context.Context, c *config.Config, now time.Time) (counted contents, err error) {
	store, err := c.OpenStoreToRead(ctx)
	if err != nil {
		return counted, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	query := history.ListQuery{Limit: 100}
	for {
		page, err := store.List(ctx, query)
		if err != nil {
			return counted, err
		}
		if counted.runs == 0 && len(page.Executions) > 0 {
			counted.newest = page.Executions[0].UpdatedAt
		}
		counted.runs += int64(len(page.Executions))
		if query.Cursor = page.NextCursor; query.Cursor == "" {
			break
		}
	}
	counted.from, counted.to = config.Versions(store)
	left, err := history.FindUnattended(ctx, store, now, nil)
	for _, u := range left {
		switch {
		case u.Due.IsZero():
			counted.orphaned++
		case counted.overdue == 0:
			counted.since = u.Due
			fallthrough
		default:
			counted.overdue++
		}
	}
	if reader, ok := fleet.Of(store); ok && err == nil {
		counted.fleet, err = fleet.Read(ctx, reader)
		for _, l := range counted.fleet.Unserved() { // these runs wait for a worker, and have never lost an owner
			counted.orphaned = max(counted.orphaned-l.Runs, 0)
		}
	}
	return counted, err
}

// Store checks the database of the settings. now decides which timers are overdue.
func (r *Report) Store(ctx context.Context, c *config.Config, now time.Time) {
	if c.Store == config.Memory {
		r.Add(OK, Database, "database", "", "none: runs are kept in memory and end with the process")
		return
	}
	if c.Store == config.Postgres {
		if !r.server(ctx, c) {
			return
		}
	} else if err := c.CheckStoreDirectory(); err != nil {
		r.AddError(Database, "database", err, "")
		return
	} else {
		r.place(c.StorePath)
		if _, err := os.Stat(c.StorePath); errors.Is(err, fs.ErrNotExist) {
			r.Add(OK, Database, "database", "", "the first run creates %s", c.StorePath)
			return
		}
	}
	counted, err := count(ctx, c, now)
	if err != nil {
		r.AddError(Database, "database", err, command(c, "db", "verify"))
		return
	}
	r.Add(OK, Database, "database", "", "%s: %s", c.Location(), counted)
	if counted.from < counted.to {
		r.older(c, counted.from, counted.to)
	}
	r.unattended(c, counted)
	r.workers(counted.fleet)
	if c.OtherStorePath != "" {
		r.two(ctx, c, counted, now)
	}
}

// command returns the line of a command on the database.
func command(c *config.Config, words ...string) string {
	return shellword.Command(append([]string{"workflows-engine"}, words...), nil, c.StoreFlags()...)
}

// older warns of a database of an older version.
func (r *Report) older(c *config.Config, from, to int) {
	r.Add(Warning, DatabaseVersion, "database", command(c, "db", "migrate"), "%s has %s; the first process that writes migrates it to version %d",
		c.Location(), config.VersionName(from), to)
}

// unattended warns of runs without an owner.
func (r *Report) unattended(settings *config.Config, c contents) {
	var parts []string
	if c.overdue > 0 {
		parts = append(parts, fmt.Sprintf("%s with an overdue timer, the first since %s", runs(c.overdue), c.since.UTC().Format(time.RFC3339)))
	}
	if c.orphaned > 0 {
		parts = append(parts, runs(c.orphaned)+" whose owner has ended")
	}
	if len(parts) > 0 {
		r.Add(Warning, RunsUnattended, "database", "Start a server or a worker, or list them: "+command(settings, "recover", "--dry-run"),
			"without an owner: %s", strings.Join(parts, ", and "))
	}
}

// workers reports the live processes, and warns of lanes that none of them serves.
func (r *Report) workers(f fleet.Fleet) {
	var names []string
	for i := range f.Processes {
		if p := &f.Processes[i]; p.Work == string(graph.WorkAll) {
			names = append(names, fleet.Name(p)+" ("+fleet.Load(p)+" in flight)")
		}
	}
	if len(names) > 0 {
		r.Add(OK, Workers, "workers", "", "%s", strings.Join(names, ", "))
	}
	for _, l := range f.Unserved() {
		r.Add(Warning, LaneUnserved, "workers", "Start a worker with "+fleet.Needed(l.Lane)+".", "%s", l.Unserved())
	}
}

func runs(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

// place checks the directory and the permissions of a database.
func (r *Report) place(path string) {
	folder := filepath.Dir(path)
	for {
		if _, err := os.Stat(folder); err == nil || filepath.Dir(folder) == folder {
			break
		}
		folder = filepath.Dir(folder) // it is created with the database
	}
	d := look(folder)
	if d.readOnly {
		r.Add(Problem, DatabaseReadOnly, "database", "Make the directory writable, or name another file with --db.", "directory %s is not writable", folder)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		file.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		r.Add(Problem, DatabaseReadOnly, "database", "Make the file writable: chmod u+rw "+path+"; or name another file with --db.", "%v", err)
	}
	if d.known && d.free < littleSpace {
		r.Add(Warning, DatabaseSpace, "database", "Free some space, or name a file on another disk with --db.", "%d MiB are free in %s", d.free>>20, folder)
	}
	if d.network != "" {
		r.Add(Problem, DatabaseNetwork, "database", "Name a file on a local disk with --db: SQLite's locks do not work on network file systems.",
			"%s is on a network file system (%s)", path, d.network)
	}
}

// two reports two databases at default places, and how to merge their runs.
func (r *Report) two(ctx context.Context, c *config.Config, counted contents, now time.Time) {
	other := *c
	other.StorePath, other.StorePathGiven = c.OtherStorePath, true
	theirs, err := count(ctx, &other, now)
	holds := theirs.String()
	if err != nil {
		holds = err.Error()
	}
	fix := fmt.Sprintf("Move it away: mv '%s' '%s.old'", other.StorePath, other.StorePath)
	if err == nil && theirs.runs > 0 {
		fix = fmt.Sprintf("Stop the processes that use it, then: for id in $(workflows-engine list --db '%s' --limit 100 --json | jq -r '.executions[].execution_id'); do "+
			"workflows-engine db export \"$id\" --db '%s' | workflows-engine db import - --db '%s'; done; and when all are there: mv '%s' '%s.old'",
			other.StorePath, other.StorePath, c.StorePath, other.StorePath, other.StorePath)
		if theirs.runs > 100 {
			fix += " (list prints 100 runs at once: repeat it with --cursor)"
		}
	}
	r.Add(Warning, DatabaseTwo, "database", fix, "two databases found: %s is used (%s), %s is not (%s)", c.StorePath, counted, other.StorePath, holds)
}
