package cli

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

// session is an open store with a runner over it.
type session struct {
	config *config.Config
	store  history.Store
	runner *graph.Runner
	// executors are what the configuration can perform in process; those of a session that only reads are of no further use.
	executors config.Executors
	// without is why a session that only reads or ends a run has no executors, nil if it has those that are configured.
	without error
	view    *liveView // nil if nothing is shown
	// owner names this process in leases.
	owner string
	// workflows finds subworkflows in the folder that was named, nil without one. What is found by address is not looked
	// at before a run: that belongs to the engine.
	workflows graph.Resolver
	// repeat are the flags that another command needs to drive the same runs, sameStore those that it needs to read them.
	repeat, sameStore []string
}

// sessionOptions say what a command needs of its session.
type sessionOptions struct {
	// create makes a database that the user named; other commands refuse a path where there is none.
	create bool
	// read opens a database without changing it, if its form allows that.
	read bool
	// look opens a database like read, for a command that tells what it would do with what is configured: with the executors
	// and the clock of one that does it.
	look bool
	// end ends a run, and goes without executors that cannot be had.
	end bool
	// live shows nodes on stderr as they complete.
	live bool
	// folder is where subworkflows are looked for, "" for nowhere.
	folder string
	// background looks after all runs of the store, not those of the command alone.
	background bool
	// log takes what happens in the background; nil logs as the flags say.
	log *slog.Logger
	// onRecord, if not nil, is called with what was recorded. It goes without live.
	onRecord func(graph.RecordEvent)
}

// open loads the configuration, opens the store and makes a runner.
func (a *app) open(ctx context.Context, o sessionOptions) (*session, error) {
	c, refused := a.flags.Load(a.env)
	err := refused
	if refused != nil && (o.read || o.end) {
		c, err = a.flags.LoadStore(a.env)
	}
	if err != nil {
		return nil, err
	}
	store, err := a.openConfigured(ctx, o, c)
	if err != nil {
		return nil, err
	}
	if c.Log = o.log; c.Log == nil {
		c.Log = c.Logger(a.stderr)
	}
	s := &session{config: c, store: store, owner: newOwner(), repeat: a.flags.Given(), sameStore: a.flags.GivenStore()}
	if s.without = refused; refused == nil {
		s.executors, s.without = c.Executors()
	}
	if s.without != nil && !o.read && !o.end {
		return nil, closing(store, s.without)
	}
	options := c.RunnerOptions(s.executors, c.Log)
	options.Owner, options.Now = s.owner, a.now
	options.Background, options.OnRecord = o.background, o.onRecord
	looked := store
	if o.read {
		// Asking about a run fires its due timers, which is left to commands that may write: here nothing is ever due.
		options.Now = func() time.Time { return time.Time{} }
		looked = reading{store, a.now}
	}
	folder := ""
	if o.folder != "" {
		folder = a.path(o.folder)
		s.workflows = config.Folder(folder)
		s.repeat = append(s.repeat, "--"+flagWorkflowDir, o.folder)
	}
	options.Workflows = c.Workflows(folder)
	if o.live {
		s.view = newLiveView(a.stderr, a.paint, store)
		options.OnRecord = s.view.record
	}
	if s.runner, err = graph.New(looked, options); err != nil {
		return nil, closing(store, err)
	}
	return s, nil
}

// openStore opens the store for commands that drive no run.
func (a *app) openStore(ctx context.Context, o sessionOptions) (history.Store, error) {
	c, err := a.flags.LoadStore(a.env)
	if err != nil {
		return nil, err
	}
	return a.openConfigured(ctx, o, c)
}

func (a *app) openConfigured(ctx context.Context, o sessionOptions, c *config.Config) (history.Store, error) {
	a.warn(c, o.log)
	open := c.OpenExistingStore
	switch {
	case o.create:
		open = c.OpenStore
	case o.read, o.look:
		open = c.OpenStoreToRead
	}
	return open(ctx)
}

// warn says which settings have no effect: to people, or in the log of a command that keeps one.
func (a *app) warn(c *config.Config, log *slog.Logger) {
	for _, warning := range c.Warnings {
		if log != nil {
			log.Warn("setting without effect", logWarning, warning)
		} else {
			fmt.Fprintf(a.stderr, "%s %s\n", a.paint.wait("warning:"), warning)
		}
	}
}

// close ends the work in order: the runner first, which still writes to the store, then what is shown.
func (s *session) close() error {
	err := firstError(s.runner.Close(), s.executors.Close())
	if s.view != nil {
		s.view.close()
	}
	return closing(s.store, err)
}

// closing closes a store on the way out; the error of the work itself counts more than that of closing.
func closing(store history.Store, err error) error {
	if e := store.Close(); err == nil {
		return e
	}
	return err
}

const flagWorkflowDir = "workflow-dir"

// registerWorkflowDir adds the flag of all commands that may start a subworkflow.
func registerWorkflowDir(set *pflag.FlagSet, folder *string, fallback string) {
	set.StringVar(folder, flagWorkflowDir, "", "`folder` with the definitions of subworkflows (default "+fallback+")")
}

// firstError gives the first of two errors that is one.
func firstError(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
