package main

import (
	"context"
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/memory"
)

// engine is the server's engine. Its calls may be made once ready is closed.
type engine struct {
	graph.Engine
	mcpserver.Definitions
	keys   history.Keyring
	probe  history.Prober
	ready  chan struct{}
	budget *memory.Budget
	// catalog holds the definitions of the workflow directory; nil without one.
	catalog *catalog.Catalog
	store   history.Store
	// note describes the migration of an older database, if there was one.
	note string
}

// open opens the store that the settings name, and a Runner over it.
func (e *engine) open(ctx context.Context, c *settings, executors config.Executors, mode machine.Mode) error {
	store, err := c.OpenStore(ctx)
	if err != nil {
		return err
	}
	e.store, e.Definitions, e.note = store, store, config.MigrationNote(store)
	options := c.RunnerOptions(executors.Within(e.budget), c.Log)
	options.Admit = e.budget.Admit
	options.DefaultMode, options.Work = mode, c.work
	if c.work == graph.WorkNone {
		options.Activities, options.Delegates = nil, executors.TaskEnds()
	}
	options.Workflows = c.Workflows(e.catalog)
	runner, err := graph.New(store, options)
	if err != nil {
		e.store = nil // another attempt may follow
		return errors.Join(err, store.Close())
	}
	e.Engine = runner
	e.keys, _ = history.As[history.Keyring](store)
	e.probe, _ = history.As[history.Prober](store)
	return nil
}

// lacking lists the missing executors for the workflows of the directory; "" if nothing is missing, or if a host performs
// activities.
func (e *engine) lacking(ctx context.Context, mode machine.Mode) string {
	if mode == machine.HostMediated {
		return ""
	}
	return config.Lacking(ctx, e.Engine, e.catalog)
}

// folderPatience is how long a stopping server waits for the workflow directory, whose disk may not respond.
const folderPatience = time.Second

// watchCatalog reads the workflow directory once to report invalid files, and keeps watching it if clients are notified of
// changes. end stops it.
func (e *engine) watchCatalog(ctx context.Context, changes bool) (end func()) {
	if e.catalog == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if changes {
			e.catalog.Watch(ctx)
		} else {
			e.catalog.Look()
		}
	}()
	return func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(folderPatience):
		}
	}
}

// key returns a key that the processes of the database share.
func (e *engine) key(ctx context.Context, name string) ([]byte, error) {
	if e.keys == nil {
		return nil, problem.New(problem.Unsupported, "the store cannot keep keys")
	}
	return e.keys.Key(ctx, name)
}

// healthy returns why the engine cannot read or write its store, nil if it can.
func (e *engine) healthy(ctx context.Context) error {
	if _, err := e.List(ctx, history.ListQuery{Limit: 1}); err != nil || e.probe == nil {
		return err
	}
	return e.probe.Probe(ctx)
}

// close closes engine and store.
func (e *engine) close() (err error) {
	if e.Engine != nil {
		err = e.Engine.Close()
	}
	if e.store != nil {
		err = errors.Join(err, e.store.Close())
	}
	return err
}

// Fork implements graph.Forker.
func (e *engine) Fork(ctx context.Context, req graph.ForkRequest) (*view.Run, error) {
	forker, err := graph.Need[graph.Forker](e.Engine, "fork")
	if err != nil {
		return nil, err
	}
	return forker.Fork(ctx, req)
}
