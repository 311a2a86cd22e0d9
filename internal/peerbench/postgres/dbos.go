package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
)

// dbosQueue is DBOS Transact for Go, with its defaults and 100 workflows at once in a process.
type dbosQueue struct{}

const dbosName, dbosQueueName, dbosVersion = "peers", "runs", "1"

func (dbosQueue) open(ctx context.Context, url, id string) (dbos.Context, error) {
	return dbos.NewContext(ctx, dbos.Config{
		AppName: dbosName, DatabaseURL: url, ExecutorID: id, ApplicationVersion: dbosVersion, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
}

type dbosFront struct {
	dbos.Context
	pool *pgxpool.Pool
}

func oneStep(step func()) dbos.Workflow[int, int] {
	return func(ctx dbos.Context, n int) (int, error) {
		return dbos.RunAsStep(ctx, func(context.Context) (int, error) {
			step()
			return n, nil
		})
	}
}

// front is a context that starts workflows in a queue that it does not poll itself.
func (q dbosQueue) front(ctx context.Context, url string) (front, error) {
	c, err := q.open(ctx, url, "front")
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, err
	}
	_, err = dbos.RegisterQueue(c, dbosQueueName, dbos.WithWorkerConcurrency(100))
	return dbosFront{c, pool}, err
}

func (f dbosFront) start(ctx context.Context, n int, batch bool) error {
	if batch { // it has no batches; 32 starts at once are the nearest
		var all sync.WaitGroup
		errs := make(chan error, 32)
		for part := range 32 {
			all.Go(func() {
				for i := part; i < n; i += 32 {
					if _, err := dbos.Enqueue[int](f.Context, dbosQueueName, "step", i, dbos.WithEnqueueApplicationVersion(dbosVersion)); err != nil {
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
	for i := range n {
		if _, err := dbos.Enqueue[int](f.Context, dbosQueueName, "step", i, dbos.WithEnqueueApplicationVersion(dbosVersion)); err != nil {
			return err
		}
	}
	return nil
}

func (f dbosFront) limit(_ context.Context, perSecond int) error {
	_, err := dbos.RegisterQueue(f.Context, dbosQueueName, dbos.WithWorkerConcurrency(100), dbos.WithQueueOnConflict(dbos.QueueConflictAlwaysUpdate),
		dbos.WithRateLimiter(&dbos.RateLimiter{Limit: perSecond, Period: time.Second}))
	return err
}

func (f dbosFront) finished(ctx context.Context) (n int, err error) {
	return n, f.pool.QueryRow(ctx, "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'").Scan(&n)
}

func (f dbosFront) close() {
	f.pool.Close()
	dbos.Shutdown(f.Context, time.Second)
}

func (q dbosQueue) perform(ctx context.Context, url string, ready, step func()) error {
	c, err := q.open(context.WithoutCancel(ctx), url, fmt.Sprint("worker", os.Getpid()))
	if err != nil {
		return err
	}
	dbos.RegisterWorkflow(c, oneStep(step), dbos.WithWorkflowName("step"))
	if err := dbos.Launch(c); err != nil {
		return err
	}
	ready()
	<-ctx.Done()
	dbos.Shutdown(c, time.Second)
	return nil
}

func (q dbosQueue) steps(ctx context.Context, url string, runs, steps int) (time.Duration, error) {
	c, err := q.open(ctx, url, "steps")
	if err != nil {
		return 0, err
	}
	defer dbos.Shutdown(c, time.Second)
	many := func(ctx dbos.Context, _ int) (int, error) {
		for i := range steps {
			if _, err := dbos.RunAsStep(ctx, func(context.Context) (int, error) { return i, nil }, dbos.WithStepName(fmt.Sprint("n", i))); err != nil {
				return 0, err
			}
		}
		return 0, nil
	}
	dbos.RegisterWorkflow(c, many, dbos.WithWorkflowName("many"))
	if err := dbos.Launch(c); err != nil {
		return 0, err
	}
	begun := time.Now()
	handles := make([]dbos.WorkflowHandle[int], runs)
	for i := range runs {
		if handles[i], err = dbos.RunWorkflow(c, many, i); err != nil {
			return 0, err
		}
	}
	for _, h := range handles {
		if _, err := h.GetResult(); err != nil {
			return 0, err
		}
	}
	return time.Since(begun), nil
}
