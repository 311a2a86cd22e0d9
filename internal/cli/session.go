package cli

import (
	"bytes"
	"context"
	"fmt"
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
	config *config.Config
	store  history.Store
	engine graph.Engine
	// driver is the engine of a session that drives runs.
	driver graph.Recoverer
	// executors are what the configuration can perform in process.
	executors config.Executors
	// without is why a lenient session has no executors, nil if it has those that are configured.
	without error
	view    display
	// workflows are the definitions of the folder that was named, nil without one. What is found by address is not looked
	// at before a run: that belongs to the engine.
	workflows *catalog.Catalog
	// repeat are the flags that another command needs to drive the same runs, sameStore those that it needs to read them.
	repeat, sameStore []string
}

// sessionOptions say what a command needs of its session.
type sessionOptions struct {
	// create makes a database that the user named; other commands refuse a path where there is none.
	create bool
	// read never changes the database. One of an older version is read from a temporary copy.
	read bool
	// bare goes by the settings of the store alone, for a command that needs no executors; lenient goes without them if the
	// settings cannot be used.
	bare, lenient bool
	// drives refuses an engine that cannot drive runs.
	drives bool
	// passes performs no activity: what the call leads to is left to others, since the command ends at once.
	passes bool
	// live shows nodes on stderr as they complete; tree, on a terminal, the tree of a run instead, which is that with the id shown or,
	// if that is "", the first of which something is recorded.
	live, tree bool
	// several says that the nodes shown are those of runs that have nothing to do with each other.
	several bool
	shown   string
	// watches shows what other processes record of that run.
	watches bool
	// folder is where definitions are looked for by name; "" for that of the settings.
	folder string
	// background looks after all runs of the store, not those of the command alone.
	background bool
	// log takes what happens in the background; nil logs as the flags say.
	log *slog.Logger
	// onRecord, if not nil, is called with what was recorded. It goes without live.
	onRecord func(graph.RecordEvent)
}

// with opens a session, calls do with it and closes it.
func (a *app) with(ctx context.Context, o sessionOptions, do func(*session) error) error {
	s, err := a.open(ctx, o)
	if err != nil {
		return err
	}
	return firstError(do(s), s.close())
}

// deliverLimit is how long a command that ends waits for the webhooks of what it has done to be sent. What is left is another process's.
const deliverLimit = 10 * time.Second

// open loads the configuration, opens the store and makes an engine over it.
func (a *app) open(ctx context.Context, o sessionOptions) (*session, error) {
	load := a.flags.Load
	if o.bare {
		load = a.flags.LoadStore
	}
	c, refused := load(a.env)
	err := refused
	if refused != nil && o.lenient {
		c, err = a.flags.LoadStore(a.env)
	}
	if err != nil {
		return nil, err
	}
	a.database = c.StorePath
	store, err := a.openStore(ctx, o, c)
	if err != nil {
		return nil, err
	}
	if c.Log = o.log; c.Log == nil {
		c.Log = a.logger(c)
	}
	s := &session{config: c, store: store, view: unseen{}, without: refused, repeat: a.flags.Given(), sameStore: a.flags.GivenStore()}
	var budget *memory.Budget
	if refused == nil && !o.bare {
		budget = c.MemoryBudget()
		s.executors, s.without = c.Executors()
	}
	if s.without != nil && !o.lenient {
		return nil, firstError(s.without, store.Close())
	}
	options := c.RunnerOptions(s.executors.Within(budget), c.Log)
	options.Admit = budget.Admit
	if o.passes {
		options.Activities, options.Delegates = nil, s.executors.TaskEnds()
	}
	options.ReadOnly, options.Background, options.OnRecord = o.read, o.background, o.onRecord
	if !o.background {
		options.Drain = 0 // who interrupts a command does not wait for it
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
	if o.live {
		options.OnRecord = func(e graph.RecordEvent) { s.view.record(e) }
	}
	if s.engine, err = a.engine(store, options); err != nil {
		return nil, firstError(err, store.Close())
	}
	if o.live {
		s.view = a.view(s, o)
	}
	if o.drives {
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
	switch {
	case o.create:
		open = c.OpenStore
	case o.read:
		open = c.OpenStoreToRead
	}
	store, err := open(ctx)
	if err != nil {
		return nil, err
	}
	if note := config.MigrationNote(store); note != "" {
		a.note(note, o.log)
	}
	return store, nil
}

// note says what people should know, or logs it in a command that keeps a log.
func (a *app) note(note string, log *slog.Logger) {
	if log != nil {
		log.Info(note)
	} else {
		fmt.Fprintf(a.stderr, "%s %s\n", a.paint.faint("note:"), note)
	}
}

// warn says which settings are doubtful, such as those without effect: to people, or in the log of a command that keeps one.
func (a *app) warn(c *config.Config, log *slog.Logger) {
	for _, warning := range c.Warnings {
		if log != nil {
			log.Warn("doubtful setting", logWarning, warning)
		} else {
			fmt.Fprintf(a.stderr, "%s %s\n", a.paint.wait("warning:"), warning)
		}
	}
}

// close ends the work in order: the engine first, which still writes to the store, then what is shown.
func (s *session) close() error {
	err := firstError(s.engine.Close(), s.executors.Close())
	s.view.close()
	return firstError(err, s.store.Close())
}

// withoutRuns is a log without the lines about runs, which the output of a command tells of.
type withoutRuns struct{ slog.Handler }

func (l withoutRuns) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == graph.LogAttemptFailed || r.Message == graph.LogRunEnded {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// firstError returns the first of two errors that is one.
func firstError(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
