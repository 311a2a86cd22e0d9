// Command postgres measures this engine, River and DBOS Transact for Go with one PostgreSQL server, in one run and in turns: runs of one
// step over one and four worker processes, runs of 40 steps, starts by a process that performs nothing, the time from a start to an idle
// worker, a shared rate, and idle workers. It measures commits of single rows beside each of them, because the pace of a machine changes.
//
//	DATABASE_URL=postgres://… go run . [-delay 250us] [-runs 2000] [-rounds 3] [-systems engine,sqlite,river,dbos]
//
// DATABASE_URL names a database of a server with its default settings, whose user may create databases. With -delay the program relays each
// connection and delays the bytes by that time in each direction.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	var b bench
	perform := flag.String("perform", "", "perform the runs of this `system` at -url, as a process of the benchmark")
	step := flag.String("step", "", "perform 50 runs of 100 steps of this `system` at -url, as a machine of the benchmark")
	url := flag.String("url", "", "the database of -perform and -step")
	systems := flag.String("systems", "engine,sqlite,river,dbos", "`names` of the systems to measure")
	flag.StringVar(&b.url, "database", os.Getenv("DATABASE_URL"), "`address` of the server")
	flag.DurationVar(&b.delay, "delay", 0, "delay of the connection in each direction")
	flag.IntVar(&b.runs, "runs", 2000, "number of runs of one step")
	flag.IntVar(&b.rounds, "rounds", 3, "number of rounds")
	flag.StringVar(&b.only, "only", "", "measure only what has this `text` in its name")
	flag.DurationVar(&b.idleFor, "idle", 20*time.Second, "how long idle workers are watched")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := error(nil)
	switch {
	case *perform != "":
		err = performFor(ctx, *perform, *url)
	case *step != "":
		_, err = systemsByName[*step].steps(ctx, *url, machineRuns, machineSteps)
	default:
		err = b.all(ctx, strings.Split(*systems, ","))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// system is an engine that keeps its runs in a database.
type system interface {
	// front returns a process that starts runs of one step without performing them.
	front(ctx context.Context, url string) (front, error)
	// perform performs runs until ctx ends. It calls ready when it waits for runs, and step at the beginning of each step.
	perform(ctx context.Context, url string, ready, step func()) error
	// steps performs runs of a number of steps in one process, all at once.
	steps(ctx context.Context, url string, runs, steps int) (time.Duration, error)
}

// front starts runs of one step.
type front interface {
	// start starts a number of runs: one after another, or in the largest batches that the system offers.
	start(ctx context.Context, n int, batch bool) error
	// finished returns the number of runs whose end is stored.
	finished(ctx context.Context) (int, error)
	// limit bounds the starts of steps a second, over all processes; errUnable if the system cannot.
	limit(ctx context.Context, perSecond int) error
	close()
}

var systemsByName = map[string]system{"engine": &engine{}, "sqlite": &engine{file: true}, "river": riverQueue{}, "dbos": dbosQueue{}}

func performFor(ctx context.Context, name, url string) error {
	say := func(text string) { os.Stdout.WriteString(text + "\n") }
	return systemsByName[name].perform(ctx, url, func() { say("ready") }, func() { say("step") })
}

// of returns a share of sorted values, such as 0.9.
func of(sorted []time.Duration, share float64) time.Duration {
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*share))]
}

func sorted(d []time.Duration) []time.Duration {
	slices.SortFunc(d, func(a, b time.Duration) int { return cmp.Compare(a, b) })
	return d
}
