package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverQueue is River: jobs of one step, with its defaults and 100 jobs at once in a process.
type riverQueue struct{}

type job struct{}

func (job) Kind() string { return "step" }

type jobWorker struct {
	river.WorkerDefaults[job]
	step func()
}

func (w *jobWorker) Work(context.Context, *river.Job[job]) error {
	w.step()
	return nil
}

type riverFront struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

func (riverQueue) front(ctx context.Context, url string) (front, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
	return &riverFront{pool, client}, err
}

func (f *riverFront) start(ctx context.Context, n int, batch bool) error {
	if !batch {
		for range n {
			if _, err := f.client.Insert(ctx, job{}, nil); err != nil {
				return err
			}
		}
		return nil
	}
	for n > 0 {
		jobs := make([]river.InsertManyParams, min(n, 1000))
		for i := range jobs {
			jobs[i].Args = job{}
		}
		if _, err := f.client.InsertManyFast(ctx, jobs); err != nil {
			return err
		}
		n -= len(jobs)
	}
	return nil
}

func (f *riverFront) finished(ctx context.Context) (n int, err error) {
	return n, f.pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state = 'completed'").Scan(&n)
}

func (*riverFront) limit(context.Context, int) error { return errUnable }

func (f *riverFront) close() { f.pool.Close() }

func (riverQueue) perform(ctx context.Context, url string, ready, step func()) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	workers := river.NewWorkers()
	river.AddWorker(workers, &jobWorker{step: step})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}}, Workers: workers})
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	ready()
	<-ctx.Done()
	return client.StopAndCancel(context.WithoutCancel(ctx))
}

func (riverQueue) steps(context.Context, string, int, int) (time.Duration, error) {
	return 0, errUnable
}
