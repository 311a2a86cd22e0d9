package cli

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/memory"
)

// session is an open store with an engine over it.
type session struct {
	// driver is the engine of a session that drives runs.
	driver graph.Recoverer
	config *config.Config
	// elsewhere is set if the runs are in no store: workers perform them, and store reads through the engine.
	elsewhere bool
	store     history.Store
	engine    graph.Engine
	// executors are the configured executors of this process.
	executors config.Executors
	// without is why a session with optional executors has none, nil if it has the configured ones.
	without error
	view    display
	// workflows holds the definitions of the workflow directory, nil without one. The engine fetches definitions at an address.
	workflows *catalog.Catalog
	// repeat holds the flags that another command needs to drive the same runs, sameStore those to read them.
	repeat, sameStore []string
}

// storeUse selects how a session opens the store.
type storeUse int

const (
	existingStore storeUse = iota // a database that the user named must exist
	createStore                   // it is created if it does not exist
	readOnlyStore                 // it is never changed; a database of an older version is read from a temporary copy
)

func readOnlyIf(readOnly bool) storeUse {
	if readOnly {
		return readOnlyStore
	}
	return existingStore
}

// executorUse selects which settings of executors a session needs.
type executorUse int

const (
	requiredExecutors executorUse = iota
	optionalExecutors             // without them if their settings are not valid
	noExecutors                   // their settings are not read
)

// displayMode selects the display on standard error while runs proceed.
type displayMode int

const (
	showNothing     displayMode = iota
	showLines                   // nodes as they complete
	showLinesOfRuns             // nodes of runs that are independent of each other
	showTree                    // on a terminal the tree of a run, else lines
	showWatchedTree             // showTree of a run that other processes drive
)

// sessionOptions configures the session of a command. The zero value fits a command that works on existing runs and ends at once.
type sessionOptions struct {
	store     storeUse
	executors executorUse
	display   displayMode
	// shown is the id of the run to show; "" for the first run with a record.
	shown string
	// drives rejects an engine that cannot drive runs.
	drives bool
	// folder is the directory with the definitions found by name; "" for the one in the settings.
	folder string
	// work tells which runs the process performs. With WorkNone the executors of the settings are not used: commands that end at once, and
	// front processes, leave activities to others.
	work graph.Work
	// stays is set for a command that drives its runs until it is stopped: attempts have the time of WORKFLOW_ENGINE_DRAIN then.
	stays bool
	// log receives log lines of the background; nil logs by the flags.
	log *slog.Logger
	// configured, if not nil, is called with the configuration before the store is opened.
	configured func(*config.Config) error
	// onRecord, if not nil, is called with each record. It excludes a display.
	onRecord func(graph.RecordEvent)
}

// detach leaves the runs that the command starts to workers.
func (o *sessionOptions) detach() {
	o.work, o.executors, o.display = graph.WorkNone, optionalExecutors, showNothing
	o.configured = func(c *config.Config) error {
		if c.Store == config.Memory {
			return usage("--detach needs a store that outlives this command").WithHint("Leave --store memory out.")
		}
		return nil
	}
}

// with opens a session, calls do with it and closes it.
func (a *app) with(ctx context.Context, o sessionOptions, do func(*session) error) error {
	s, err := a.open(ctx, o)
	if err != nil {
		return err
	}
	return firstError(do(s), s.close())
}

// deliverLimit bounds the wait for deliveries at the end of a command. Other processes send the rest.
const deliverLimit = 10 * time.Second

// open loads the configuration, opens the store and makes an engine over it.
func (a *app) open(ctx context.Context, o sessionOptions) (*session, error) {
	load := a.flags.Load
	if o.executors == noExecutors && a.backend == nil {
		load = a.flags.LoadStore
	}
	c, refused := load(a.env)
	err := refused
	if refused != nil && o.executors == optionalExecutors {
		c, err = a.flags.LoadStore(a.env)
	}
	if err != nil {
		return nil, err
	}
	a.database = c.Location()
	if o.configured != nil {
		if err := o.configured(c); err != nil {
			return nil, err
		}
	}
	if c.Log = o.log; c.Log == nil {
		c.Log = a.logger(c)
	}
	var store history.Store
	if a.backend != nil {
		a.warn(c, o.log)
		o.executors, o.work, refused = noExecutors, graph.WorkNone, nil
	} else if store, err = a.openStore(ctx, o, c); err != nil {
		return nil, err
	}
	s := &session{config: c, store: store, view: unseen{}, without: refused, repeat: a.flags.Given(), sameStore: a.flags.GivenStore()}
	var budget *memory.Budget
	if refused == nil && o.executors != noExecutors {
		budget = c.MemoryBudget()
		s.executors, s.without = c.Executors()
	}
	if s.without != nil && o.executors != optionalExecutors {
		return nil, firstError(s.without, store.Close())
	}
	options := c.RunnerOptions(s.executors.Within(budget), c.Log)
	options.Admit, options.Work = budget.Admit, o.work
	if o.work == graph.WorkNone {
		options.Activities, options.Delegates = nil, s.executors.TaskEnds()
	}
	options.ReadOnly, options.OnRecord = o.store == readOnlyStore, o.onRecord
	if o.work != graph.WorkAll {
		if !o.stays {
			options.Drain = 0 // an interrupted command ends at once
		}
		options.DeliverLimit = deliverLimit
		if !c.LogLevelGiven {
			options.Logger = slog.New(withoutRuns{c.Log.Handler()})
		}
	}
	folder := c.WorkflowDir
	if o.folder != "" {
		folder = a.path(o.folder)
		s.repeat = append(s.repeat, "--"+config.FlagWorkflowDir, o.folder)
	}
	s.workflows = c.Catalog(folder, o.log)
	options.Workflows = c.Workflows(s.workflows)
	if o.display != showNothing {
		options.OnRecord = func(e graph.RecordEvent) { s.view.record(e) }
	}
	if a.backend != nil {
		if err := a.connect(ctx, s, options); err != nil {
			return nil, err
		}
		if o.display == showTree {
			o.display = showWatchedTree
		}
	} else if s.engine, err = a.engine(store, options); err != nil {
		return nil, firstError(err, store.Close())
	}
	if o.display != showNothing {
		s.view = a.view(s, o)
	}
	if o.drives && !s.elsewhere {
		if s.driver, err = graph.Need[graph.Recoverer](s.engine, "driving runs"); err != nil {
			return nil, firstError(err, s.close())
		}
	}
	return s, nil
}

// writeJSON is writeEncoded without the secrets of the settings.
func (s *session) writeJSON(w io.Writer, v any) error {
	var text bytes.Buffer
	if err := writeEncoded(&text, v); err != nil {
		return err
	}
	_, err := w.Write(s.config.AnswerRedaction().Text(text.Bytes()))
	return err
}

// engine makes the engine of a session.
func (a *app) engine(store history.Store, o graph.Options) (graph.Engine, error) {
	if a.newEngine != nil {
		return a.newEngine(store, o)
	}
	return graph.New(store, o)
}

func (a *app) openStore(ctx context.Context, o sessionOptions, c *config.Config) (history.Store, error) {
	a.warn(c, o.log)
	c.Now = a.now
	open := c.OpenExistingStore
	switch o.store {
	case createStore:
		open = c.OpenStore
	case readOnlyStore:
		open = c.OpenStoreToRead
	}
	store, err := open(ctx)
	if err != nil {
		return nil, err
	}
	if note := config.MigrationNote(store); note != "" {
		a.note(note, o.log)
	}
	if o.store == readOnlyStore {
		if lag, err := lagOf(ctx, store); err == nil && lag.Replica { // a failure shows in the first read
			a.note("the database is a replica, "+lag.String(), o.log)
		}
	}
	return store, nil
}

// lagOf tells how far the data of a store are behind, if it is a replica.
func lagOf(ctx context.Context, store history.Store) (history.Lag, error) {
	follower, ok := history.As[history.Follower](store)
	if !ok {
		return history.Lag{}, nil
	}
	return follower.Lag(ctx)
}

// note prints a note, or logs it in a command with a log.
func (a *app) note(note string, log *slog.Logger) {
	if log != nil {
		log.Info(note)
	} else {
		a.say("%s %s\n", a.paint.faint("note:"), note)
	}
}

// warn prints the warnings about settings, or logs them in a command with a log.
func (a *app) warn(c *config.Config, log *slog.Logger) {
	for _, warning := range c.Warnings {
		if log != nil {
			log.Warn("setting questionable", logWarning, warning)
		} else {
			a.say("%s %s\n", a.paint.wait("warning:"), warning)
		}
	}
}

// close ends the engine first, which still writes to the store, then the display, then the store.
func (s *session) close() error {
	err := firstError(s.engine.Close(), s.executors.Close())
	s.view.close()
	return firstError(err, s.store.Close())
}

// withoutRuns drops the log lines about runs: the output of a command covers them.
type withoutRuns struct{ slog.Handler }

func (l withoutRuns) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == graph.LogAttemptFailed || r.Message == graph.LogRunEnded {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// firstError returns the first error that is not nil.
func firstError(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
