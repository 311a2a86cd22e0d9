package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// engine is this engine over PostgreSQL, or over a file of SQLite with full durability, with its defaults.
type engine struct{ file bool }

func (e *engine) open(ctx context.Context, url string) (history.Store, error) {
	if e.file {
		return historysql.Open(ctx, url, historysql.Options{FollowWrites: true})
	}
	return historypg.Open(ctx, url, historypg.Options{})
}

// linear returns a definition with a number of steps.
func linear(steps int) (*definition.Document, error) {
	nodes := []string{`{"id":"begin","type":"start"}`}
	edges, last := []string{`{"source":"__start__","target":"begin"}`}, "begin"
	for i := range steps {
		id := fmt.Sprint("n", i)
		nodes = append(nodes, fmt.Sprintf(`{"id":%q,"type":"step","config":{"handler":"work"}}`, id))
		edges = append(edges, fmt.Sprintf(`{"source":%q,"target":%q}`, last, id))
		last = id
	}
	nodes = append(nodes, `{"id":"finish","type":"end"}`)
	edges = append(edges, fmt.Sprintf(`{"source":%q,"target":"finish"}`, last))
	return definition.Parse([]byte(`{"document":{"schema":"https://agent-workflow.dev/schemas/workflow-definition.json","name":"linear","version":"1.0.0"},` +
		`"state_schema":{"type":"object"},"nodes":[` + strings.Join(nodes, ",") + `],"edges":[` + strings.Join(edges, ",") + `]}`))
}

// executor calls step at the beginning of each step.
func executor(step func()) activities.Executor {
	return activities.ExecutorFunc(func(context.Context, activities.Request) (activities.Result, error) {
		step()
		return activities.Result{Output: map[string]any{"ok": true}}, nil
	})
}

type engineFront struct {
	store  history.Store
	runner *graph.Runner
	d      *definition.Document
}

func (e *engine) front(ctx context.Context, url string) (front, error) {
	store, err := e.open(ctx, url)
	if err != nil {
		return nil, err
	}
	d, err := linear(1)
	if err != nil {
		return nil, err
	}
	r, err := graph.New(store, graph.Options{Work: graph.WorkNone})
	return &engineFront{store, r, d}, err
}

func (f *engineFront) one(ctx context.Context) error {
	_, err := f.runner.Start(ctx, graph.StartRequest{Definition: f.d, Wait: graph.WaitAtMost(0)})
	return err
}

// start starts up to 32 runs at once for batch: appends that wait at the same time share a transaction.
func (f *engineFront) start(ctx context.Context, n int, batch bool) error {
	at := 1
	if batch {
		at = 32
	}
	var all sync.WaitGroup
	errs := make(chan error, at)
	for part := range at {
		all.Go(func() {
			for i := part; i < n; i += at {
				if err := f.one(ctx); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}

func (f *engineFront) finished(ctx context.Context) (int, error) {
	return f.store.Count(ctx, history.ListQuery{Phase: history.PhaseCompleted}, 1<<30)
}

func (f *engineFront) limit(ctx context.Context, perSecond int) error {
	l, ok := history.As[history.Limiter](f.store)
	if !ok {
		return errUnable
	}
	return l.SetLimits(ctx, history.SharedLimit{Class: "step", PerSecond: float64(perSecond)})
}

func (f *engineFront) close() {
	f.runner.Close()
	f.store.Close()
}

func (e *engine) perform(ctx context.Context, url string, ready, step func()) error {
	store, err := e.open(context.WithoutCancel(ctx), url)
	if err != nil {
		return err
	}
	defer store.Close()
	r, err := graph.New(store, graph.Options{Work: graph.WorkAll, Activities: executor(step)})
	if err != nil {
		return err
	}
	ready()
	<-ctx.Done()
	return r.Close()
}

func (e *engine) steps(ctx context.Context, url string, runs, steps int) (time.Duration, error) {
	store, err := e.open(ctx, url)
	if err != nil {
		return 0, err
	}
	defer store.Close()
	d, err := linear(steps)
	if err != nil {
		return 0, err
	}
	r, err := graph.New(store, graph.Options{Activities: executor(func() {})})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	begun := time.Now()
	var all sync.WaitGroup
	errs := make([]error, runs)
	for i := range runs {
		all.Go(func() {
			v, err := r.Start(ctx, graph.StartRequest{Definition: d, Wait: graph.WaitAtMost(5 * time.Minute)})
			if err == nil && v.Status != "completed" {
				err = fmt.Errorf("the run is %s", v.Status)
			}
			errs[i] = err
		})
	}
	all.Wait()
	return time.Since(begun), errors.Join(errs...)
}

// submits submits the results of a run of n steps that a host performs, and returns how long each call took.
func (e *engine) submits(ctx context.Context, url string, n int) ([]time.Duration, error) {
	store, err := e.open(ctx, url)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	d, err := linear(n)
	if err != nil {
		return nil, err
	}
	r, err := graph.New(store, graph.Options{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	v, err := r.Start(ctx, graph.StartRequest{Definition: d, Mode: machine.HostMediated})
	if err != nil {
		return nil, err
	}
	took := make([]time.Duration, n)
	for i := range took {
		begun := time.Now()
		if v, err = r.SubmitActivity(ctx, graph.SubmitRequest{ExecutionID: v.ExecutionID, NodeID: fmt.Sprint("n", i), OK: true, Result: map[string]any{"ok": true}}); err != nil {
			return nil, err
		}
		took[i] = time.Since(begun)
	}
	return took, nil
}
