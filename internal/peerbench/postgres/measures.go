package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// backlog starts runs of one step, then workers, and measures from the first step until the ends of all runs are stored.
func (b *bench) backlog(workers int) func(context.Context, string, system) (string, error) {
	return func(ctx context.Context, name string, s system) (string, error) {
		url, drop, err := b.database(ctx, name)
		if err != nil {
			return "", err
		}
		defer drop()
		f, err := s.front(ctx, url)
		if err != nil {
			return "", err
		}
		defer f.close()
		if err := f.start(ctx, b.runs, true); err != nil {
			return "", err
		}
		steps := make(chan time.Time, b.runs)
		_, stop, err := b.workers(ctx, name, url, workers, steps)
		if err != nil {
			return "", err
		}
		defer stop()
		times, err := take(ctx, steps, b.runs)
		if err != nil {
			return "", err
		}
		for n := 0; n < b.runs; {
			time.Sleep(5 * time.Millisecond)
			if n, err = f.finished(ctx); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("%.0f runs/s", float64(b.runs)/time.Since(times[0]).Seconds()), nil
	}
}

// stepping measures runs of many steps in one process, and the flushes of the server's log for a step.
func (b *bench) stepping(runs, steps int) func(context.Context, string, system) (string, error) {
	return func(ctx context.Context, name string, s system) (string, error) {
		url, drop, err := b.database(ctx, name)
		if err != nil {
			return "", err
		}
		defer drop()
		before, err := b.count(ctx, "SELECT wal_sync FROM pg_stat_wal")
		if err != nil {
			return "", err
		}
		took, err := s.steps(ctx, url, runs, steps)
		if err != nil {
			return "", err
		}
		time.Sleep(time.Second) // the server's counters are late
		after, err := b.count(ctx, "SELECT wal_sync FROM pg_stat_wal")
		text := fmt.Sprintf("%.0f steps/s", float64(runs*steps)/took.Seconds())
		if name != "sqlite" {
			text += fmt.Sprintf(", %.2f flushes a step", (after-before)/float64(runs*steps))
		}
		return text, err
	}
}

// count returns a number that the server knows.
func (b *bench) count(ctx context.Context, query string, args ...any) (n float64, err error) {
	c, err := pgx.Connect(ctx, b.url)
	if err != nil {
		return 0, err
	}
	defer c.Close(ctx)
	return n, c.QueryRow(ctx, query, args...).Scan(&n)
}

// starting measures starts by a process that performs nothing.
func (b *bench) starting(batch bool) func(context.Context, string, system) (string, error) {
	return func(ctx context.Context, name string, s system) (string, error) {
		url, drop, err := b.database(ctx, name)
		if err != nil {
			return "", err
		}
		defer drop()
		f, err := s.front(ctx, url)
		if err != nil {
			return "", err
		}
		defer f.close()
		begun := time.Now()
		err = f.start(ctx, b.runs, batch)
		return fmt.Sprintf("%.0f starts/s", float64(b.runs)/time.Since(begun).Seconds()), err
	}
}

// latency measures from a start until an idle worker begins the step.
func (b *bench) latency(ctx context.Context, name string, s system) (string, error) {
	url, drop, err := b.database(ctx, name)
	if err != nil {
		return "", err
	}
	defer drop()
	f, err := s.front(ctx, url)
	if err != nil {
		return "", err
	}
	defer f.close()
	steps := make(chan time.Time, 100)
	_, stop, err := b.workers(ctx, name, url, 1, steps)
	if err != nil {
		return "", err
	}
	defer stop()
	time.Sleep(2 * time.Second)
	var took []time.Duration
	for i := range 60 {
		time.Sleep(time.Duration(100+(i*37)%100) * time.Millisecond)
		begun := time.Now()
		if err := f.start(ctx, 1, false); err != nil {
			return "", err
		}
		times, err := take(ctx, steps, 1)
		if err != nil {
			return "", err
		}
		took = append(took, times[0].Sub(begun))
	}
	took = sorted(took)
	return fmt.Sprintf("median %.1f, p90 %.1f, longest %.1f ms", ms(of(took, 0.5)), ms(of(took, 0.9)), ms(took[len(took)-1])), nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// rate measures 600 runs under a limit of 150 starts a second over four workers: 4 s.
func (b *bench) rate(ctx context.Context, name string, s system) (string, error) {
	const runs, limit = 600, 150
	url, drop, err := b.database(ctx, name)
	if err != nil {
		return "", err
	}
	defer drop()
	f, err := s.front(ctx, url)
	if err != nil {
		return "", err
	}
	defer f.close()
	if err := f.limit(ctx, limit); err != nil {
		return "", err
	}
	steps := make(chan time.Time, runs)
	_, stop, err := b.workers(ctx, name, url, 4, steps)
	if err != nil {
		return "", err
	}
	defer stop()
	if err := f.start(ctx, runs, true); err != nil {
		return "", err
	}
	times, err := take(ctx, steps, runs)
	if err != nil {
		return "", err
	}
	most, from := 0, 0
	for i, at := range times {
		for at.Sub(times[from]) >= time.Second {
			from++
		}
		most = max(most, i-from+1)
	}
	return fmt.Sprintf("%.2f s (ideal %.2f), at most %d in a second", times[runs-1].Sub(times[0]).Seconds(), float64(runs-1)/limit, most), nil
}

// idle measures four workers without work: their processor time, and the transactions of the server.
func (b *bench) idle(ctx context.Context, name string, s system) (string, error) {
	url, drop, err := b.database(ctx, name)
	if err != nil {
		return "", err
	}
	defer drop()
	f, err := s.front(ctx, url) // creates the tables
	if err != nil {
		return "", err
	}
	f.close()
	workers, stop, err := b.workers(ctx, name, url, 4, make(chan time.Time, 1))
	if err != nil {
		return "", err
	}
	defer stop()
	time.Sleep(3 * time.Second)
	transactions := func() float64 {
		if name == "sqlite" {
			return 0
		}
		_, database, _ := strings.Cut(url, "dbname=")
		n, _ := b.count(ctx, "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1", strings.Fields(database)[0])
		return n
	}
	before, commits := ticks(workers), transactions()
	time.Sleep(b.idleFor)
	seconds := b.idleFor.Seconds()
	return fmt.Sprintf("%.2f %% of a core each, %.1f transactions a second each", float64(ticks(workers)-before)/4/seconds,
		(transactions()-commits)/4/seconds), nil
}

// ticks returns the processor time of the processes, in hundredths of a second.
func ticks(workers []worker) (n int) {
	for _, w := range workers {
		text, _ := os.ReadFile("/proc/" + strconv.Itoa(w.cmd.Process.Pid) + "/stat")
		_, rest, _ := strings.Cut(string(text), ") ")
		for _, field := range strings.Fields(rest)[11:13] {
			t, _ := strconv.Atoi(field)
			n += t
		}
	}
	return n
}

const machineRuns, machineSteps = 50, 100

// machines measures 50 runs of 100 steps in each of two processes at once.
func (b *bench) machines(ctx context.Context, name string, s system) (string, error) {
	if name == "river" {
		return "", errUnable
	}
	url, drop, err := b.database(ctx, name)
	if err != nil {
		return "", err
	}
	defer drop()
	f, err := s.front(ctx, url) // creates the tables
	if err != nil {
		return "", err
	}
	f.close()
	begun := time.Now()
	var processes [2]*exec.Cmd
	for i := range processes {
		processes[i] = exec.CommandContext(ctx, os.Args[0], "-step", name, "-url", url)
		processes[i].Stderr = os.Stderr
		if err := processes[i].Start(); err != nil {
			return "", err
		}
	}
	for _, p := range processes {
		err = errors.Join(err, p.Wait())
	}
	return fmt.Sprintf("%.0f steps/s", 2*machineRuns*machineSteps/time.Since(begun).Seconds()), err
}

// submits measures how long a host waits for the answer to a result that it submits, one after another.
func (b *bench) submits(ctx context.Context, name string, s system) (string, error) {
	e, ok := s.(*engine)
	if !ok {
		return "", errUnable
	}
	url, drop, err := b.database(ctx, name)
	if err != nil {
		return "", err
	}
	defer drop()
	took, err := e.submits(ctx, url, 300)
	if err != nil {
		return "", err
	}
	took = sorted(took)
	return fmt.Sprintf("median %.2f, p99 %.2f ms", ms(of(took, 0.5)), ms(of(took, 0.99))), nil
}
