package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

type pruneOptions struct {
	olderThan, name                   string
	phases                            []string
	dryRun, json, definitions, vacuum bool
	batch                             int
}

func newPrune(a *app) *cobra.Command {
	var o pruneOptions
	cmd := &cobra.Command{
		Use:   "prune --older-than TIME",
		Short: "Delete ended runs",
		Long: `Delete runs that have ended and have not changed for a time, with their subworkflows, history and state. A run is deleted with
all its subworkflows or not at all, and never before all of them have ended. Deleted runs cannot be restored: export those worth
keeping, and list the runs first with --dry-run.

Servers and workers may run meanwhile: each transaction is short. A run with very many records is deleted in steps, and disappears for
every process with the first step. If prune is killed, the next one completes the deletion and reports it.

Deleted runs leave free space in the file for new runs. --vacuum returns it to the disk: it rewrites the file, needs the same space
once more, and blocks writers until it is done.

Definitions are kept, because runs can be started by their name. --definitions also deletes definitions that no remaining run
uses or can start as a subworkflow.`,
		Example: `  workflows-engine db prune --older-than 30d --dry-run
  workflows-engine db prune --older-than 30d
  workflows-engine db prune --older-than 7d --phase failed,cancelled --name nightly-import
  workflows-engine db prune --older-than 90d --definitions --vacuum --json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.prune(cmd.Context(), o) },
	}
	set := cmd.Flags()
	set.StringVar(&o.olderThan, "older-than", "", "delete only runs not changed for this `time`, as in 30d, 2w or 12h; 0 for all ended runs")
	set.StringSliceVar(&o.phases, "phase", nil, "delete only runs in this `phase`: completed, failed or cancelled (default all three)")
	set.StringVar(&o.name, "name", "", "delete only runs of the definition with this document.`name`")
	set.BoolVar(&o.dryRun, "dry-run", false, "delete nothing; list the runs to delete")
	set.BoolVar(&o.json, "json", false, "print as JSON")
	set.IntVar(&o.batch, "batch", 100, "examine this `number` of runs at once")
	set.BoolVar(&o.definitions, "definitions", false, "also delete unused definitions")
	set.BoolVar(&o.vacuum, "vacuum", false, "return free space to the disk")
	return cmd
}

// query turns the options into a query.
func (o pruneOptions) query(now time.Time) (history.PruneQuery, error) {
	q := history.PruneQuery{DefinitionName: o.name, Limit: o.batch, DryRun: o.dryRun}
	if o.olderThan == "" {
		return q, usage("db prune requires --older-than").WithHint("Write the time since the last change, as in --older-than 30d; --dry-run lists the runs.")
	}
	age, err := parseAge(o.olderThan)
	if err != nil {
		return q, usage("invalid value %q for --older-than", o.olderThan).
			WithHint("Write a number with its unit, as in 30d, 2w, 12h or 1d12h.")
	}
	q.Before = now.Add(-age)
	if o.batch < 1 {
		return q, usage("--batch must be above 0, found %d", o.batch)
	}
	if o.vacuum && o.dryRun {
		return q, usage("--vacuum and --dry-run cannot be given together").WithHint("Choose one of them.")
	}
	for _, text := range o.phases {
		p := history.Phase(text)
		if !slices.Contains(history.Phases(), p) || !p.Terminal() {
			return q, usage("invalid value %q for --phase", text).
				WithHint("Write completed, failed or cancelled; runs that have not ended are never deleted.")
		}
		q.Phases = append(q.Phases, p)
	}
	return q, nil
}

// parseAge reads a duration that may begin with weeks and days, of 24 hours each.
func parseAge(text string) (time.Duration, error) {
	var total time.Duration
	rest := text
	for _, unit := range []struct {
		letter string
		length time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		number, behind, ok := strings.Cut(rest, unit.letter)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return 0, err
		}
		// An overflow would be negative, a future time, and would select every run.
		if time.Duration(n) > (math.MaxInt64-total)/unit.length {
			return 0, strconv.ErrRange
		}
		total += time.Duration(n) * unit.length
		rest = behind
	}
	if rest == "" && rest != text {
		return total, nil
	}
	d, err := time.ParseDuration(rest)
	if err == nil && (d < 0 || d > math.MaxInt64-total) {
		err = strconv.ErrRange
	}
	return total + d, err
}

// collected is the result of gc: deleted runs and definitions, or those that it would delete.
type collected struct {
	DryRun       bool             `json:"dry_run,omitempty"`
	Runs         int              `json:"runs"`
	Subworkflows int              `json:"subworkflows"`
	Records      int64            `json:"records"`
	Bytes        int64            `json:"record_bytes"`
	Finished     int              `json:"finished,omitempty"`
	Trees        []collectedTree  `json:"deleted"`
	Definitions  []collectedDef   `json:"definitions,omitempty"`
	File         *collectedInFile `json:"file,omitempty"`
}

type collectedTree struct {
	ExecutionID  string `json:"execution_id"`
	Name         string `json:"definition_name"`
	Phase        string `json:"phase"`
	UpdatedAt    string `json:"updated_at"`
	Subworkflows int    `json:"subworkflows"`
	Records      int64  `json:"records"`
	Bytes        int64  `json:"record_bytes"`
}

type collectedDef struct {
	Hash    string `json:"definition_hash"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

type collectedInFile struct {
	Bytes int64 `json:"bytes"`
	Free  int64 `json:"free_bytes"`
}

func (c *collected) add(t *history.PrunedTree) {
	c.Runs++
	c.Subworkflows += t.Executions - 1
	c.Records += t.Records
	c.Bytes += t.Bytes
	c.Trees = append(c.Trees, collectedTree{
		t.ExecutionID, t.DefinitionName, string(t.Phase), history.FormatTimestamp(t.UpdatedAt), t.Executions - 1, t.Records, t.Bytes,
	})
}

// prune deletes ended runs. Deletions before an error or an interrupt are reported, too.
func (a *app) prune(ctx context.Context, o pruneOptions) error {
	q, err := o.query(a.now())
	if err != nil {
		return err
	}
	return a.with(ctx, sessionOptions{store: readOnlyIf(o.dryRun), executors: noExecutors}, func(s *session) error {
		pruner, err := graph.Need[graph.Pruner](s.engine, "db prune")
		if err != nil {
			return err
		}
		if o.vacuum { // a store without a file is rejected before anything is deleted
			if _, _, err := pruner.Size(ctx); errors.Is(err, problem.Unsupported) {
				hint := "Leave --vacuum out."
				if s.config.Store == config.Postgres {
					hint = "Leave --vacuum out: autovacuum makes the space free for new runs. To return it to the disk, run VACUUM (FULL) in the server."
				}
				return problem.New(problem.Unsupported, "--vacuum requires a store in a file").WithHint("%s", hint)
			} else if err != nil {
				return err
			}
		}
		c := &collected{DryRun: o.dryRun, Trees: []collectedTree{}}
		err = c.collect(ctx, pruner, q)
		if err == nil && o.definitions {
			err = c.collectDefinitions(ctx, pruner, o.dryRun)
		}
		if err == nil && o.vacuum {
			err = pruner.Shrink(ctx)
		}
		if err == nil {
			err = c.measure(ctx, pruner)
		}
		return firstError(err, a.writeCollected(c, o))
	})
}

// measure notes the size of the file, if the runs are in one.
func (c *collected) measure(ctx context.Context, pruner graph.Pruner) error {
	bytes, free, err := pruner.Size(ctx)
	if errors.Is(err, problem.Unsupported) {
		return nil
	}
	c.File = &collectedInFile{bytes, free}
	return err
}

// collect deletes page after page.
func (c *collected) collect(ctx context.Context, pruner history.Pruner, q history.PruneQuery) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, err := pruner.Prune(ctx, q)
		for i := range page.Trees {
			c.add(&page.Trees[i])
		}
		c.Finished += page.Finished
		if q.Cursor = page.NextCursor; err != nil || q.Cursor == "" {
			return err
		}
	}
}

func (c *collected) collectDefinitions(ctx context.Context, pruner history.Pruner, dryRun bool) error {
	gone, err := pruner.PruneDefinitions(ctx, dryRun)
	for _, d := range gone {
		c.Definitions = append(c.Definitions, collectedDef{d.Hash, d.Name, d.Version})
	}
	return err
}

func (a *app) writeCollected(c *collected, o pruneOptions) error {
	if o.json {
		return writeEncoded(a.stdout, c)
	}
	verb := "deleted"
	if c.DryRun {
		verb = "would delete"
		rows := [][]string{{"ID", "NAME", "PHASE", "CHANGED", "SUBWORKFLOWS", "RECORDS", "BYTES"}}
		for _, t := range c.Trees {
			rows = append(rows, []string{
				t.ExecutionID, dash(t.Name), t.Phase, t.UpdatedAt, strconv.Itoa(t.Subworkflows), strconv.FormatInt(t.Records, 10), bytesText(t.Bytes),
			})
		}
		if len(c.Trees) > 0 {
			if err := writeTable(a.human, rows); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(a.human, "%s %s with %s: %s, %s\n", verb, count(c.Runs, "run"), count(c.Subworkflows, "subworkflow"),
		count(int(c.Records), "record"), bytesText(c.Bytes))
	switch {
	case c.Finished > 0 && c.DryRun:
		fmt.Fprintf(a.human, "would finish an interrupted deletion of %s\n", count(c.Finished, "run"))
	case c.Finished > 0:
		fmt.Fprintf(a.human, "finished an interrupted deletion of %s\n", count(c.Finished, "run"))
	}
	switch {
	case o.definitions && c.DryRun:
		fmt.Fprintf(a.human, "%s not used by any run; those used only by the runs above would be deleted, too\n", count(len(c.Definitions), "definition"))
	case o.definitions:
		fmt.Fprintf(a.human, "deleted %s\n", count(len(c.Definitions), "definition"))
	}
	if c.File != nil && !c.DryRun {
		fmt.Fprintf(a.human, "the file has %s, %s of it free for new runs\n", bytesText(c.File.Bytes), bytesText(c.File.Free))
	}
	return nil
}

// bytesText prints a size with three digits at most.
func bytesText(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000*1000:
		return fmt.Sprintf("%.3g kB", float64(n)/1000)
	case n < 1000*1000*1000:
		return fmt.Sprintf("%.3g MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.4g GB", float64(n)/1e9)
}
