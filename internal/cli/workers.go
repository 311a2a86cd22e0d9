package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/fleet"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func newWorkers(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "List the workers of a database",
		Long: `List the processes with a live lease on a database: workers, and servers and commands while they own runs. ROLE is own (performs its own runs), all
(a worker) or none (a front process). IN FLIGHT are the attempts in flight of its capacity, WAITING the attempts that wait for their turn in
the process, RUNS the open runs that it owns. PERFORMS are its executors; a kind alone, such as llm_call, means all of its kind.

Below are the lanes with waiting runs that no worker serves. The command queue lists all lanes. If the database is a replica, a note tells
how far it is behind; in JSON it is behind_ms of replica.`,
		Example: `  workflows-engine workers
  workflows-engine workers --json | jq '.processes[] | select(.full)'`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.workers(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func newQueue(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "List the runs that wait for a worker",
		Long: `List the lanes with runs that wait for a worker: the queue and the executor that the next attempt needs, the number of runs, the
longest wait, and the number of live workers that serve the lane. A run that waits in a process for its turn is
not listed; the command workers counts its attempts.`,
		Example: `  workflows-engine queue
  workflows-engine queue --json | jq '.lanes[] | select(.workers == 0)'`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.queue(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// fleet reads the processes and lanes of a database.
func (a *app) fleet(ctx context.Context, print func(*session, fleet.Fleet) error) error {
	return a.with(ctx, sessionOptions{store: readOnlyStore, executors: noExecutors}, func(s *session) error {
		f, err := s.fleet(ctx)
		if err != nil {
			return err
		}
		return print(s, f)
	})
}

// fleet returns the processes and lanes of the store; none if the store lists none.
func (s *session) fleet(ctx context.Context) (fleet.Fleet, error) {
	reader, ok := fleet.Of(s.store)
	if !ok {
		return fleet.Fleet{}, nil
	}
	return fleet.Read(ctx, reader)
}

// maxPerforms is the number of executors listed for a process.
const maxPerforms = 8

// workers prints the processes of a database.
func (a *app) workers(ctx context.Context, asJSON bool) error {
	return a.fleet(ctx, func(s *session, f fleet.Fleet) error {
		if asJSON {
			j := f.JSON()
			lag, err := lagOf(ctx, s.store)
			if err != nil {
				return err
			}
			if lag.Replica {
				replica := jsonvalue.Ordered{}
				if lag.Known {
					replica.Put("behind_ms", float64(lag.Behind.Milliseconds()))
				}
				j.Put("replica", replica)
			}
			return s.writeJSON(a.stdout, j)
		}
		if err := a.writeWorkers(f, a.now()); err != nil {
			return err
		}
		a.writeUnserved(f)
		return nil
	})
}

func (a *app) writeWorkers(f fleet.Fleet, now time.Time) error {
	if len(f.Processes) == 0 {
		fmt.Fprintln(a.stderr, "no live processes (front processes are not listed)")
		return nil
	}
	rows := [][]string{{"PROCESS", "ROLE", "VERSION", "AGE", "IN FLIGHT", "WAITING", "RUNS", "QUEUES", "PERFORMS"}}
	for i := range f.Processes {
		rows = append(rows, workerRow(&f.Processes[i], now))
	}
	return writeTable(a.human, fitted(rows, a.columns(), map[string]int{"PROCESS": 20, "VERSION": 8, "QUEUES": 10, "PERFORMS": 20}))
}

func workerRow(p *history.Process, now time.Time) []string {
	since, waiting := "", ""
	if !p.Started.IsZero() {
		since = age(p.Started, now)
	}
	if p.Work != "" {
		waiting = fmt.Sprint(p.Waiting)
	}
	row := []string{fleet.Name(p), p.Work, p.Version, since, fleet.Load(p), waiting, fmt.Sprint(p.Runs), fleet.Queues(p), fleet.Performs(p, maxPerforms)}
	for i := range row {
		row[i] = dash(row[i])
	}
	return row
}

// queue prints the lanes of a database.
func (a *app) queue(ctx context.Context, asJSON bool) error {
	return a.fleet(ctx, func(s *session, f fleet.Fleet) error {
		if asJSON {
			return s.writeJSON(a.stdout, f.LanesJSON())
		}
		if len(f.Lanes) == 0 {
			fmt.Fprintln(a.stderr, "no run waits for a worker")
			return nil
		}
		if err := a.writeLanes(f, a.now()); err != nil {
			return err
		}
		a.writeUnserved(f)
		return nil
	})
}

func (a *app) writeLanes(f fleet.Fleet, now time.Time) error {
	rows := [][]string{{"LANE", "RUNS", "FIRST WAITS", "WORKERS"}}
	for _, l := range f.Lanes {
		rows = append(rows, []string{fleet.LaneName(l.Lane), l.Count(), age(l.Since, now), fmt.Sprint(l.Workers)})
	}
	return writeTable(a.human, rows)
}

// writeUnserved prints the lanes that no worker serves.
func (a *app) writeUnserved(f fleet.Fleet) {
	for _, l := range f.Unserved() {
		a.say("%s\n", l.UnservedText())
	}
}
