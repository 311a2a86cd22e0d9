package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

type copyOptions struct {
	from, to string
	json     bool
}

func newCopy(a *app) *cobra.Command {
	var o copyOptions
	cmd := &cobra.Command{
		Use:   "copy --from PLACE --to PLACE",
		Short: "Copy all runs to another database",
		Long: `Copy all definitions, shared limits, keys and runs to another database, and check both. A PLACE is the path of a database file, the address of a
PostgreSQL server without a password, or @ and the path of a file with such an address. The place that is left out is the database of the
settings.

Ended runs stay in the source. Other runs move: they are cancelled in the source, with the target in the reason, without compensations
and without cancelling tasks at agents, and continue in the target from the record before that. So no two processes continue a run.
Stop the processes that use the source first: a run that a process drives stays in the source. This is not a backup: the other runs of the source are ended.

Copied with the runs are their marks as handled, the links to their retries and forks, and their deliveries of webhooks. Pending
deliveries are sent by processes of the target alone; a delivery that a process of the source is sending stays there. A shared limit of the
target stays as it is.

After an interruption, run the same command again: it completes the copy.

Exit status: 0 if both databases have all runs and no findings; 1 otherwise.`,
		Example: `  workflows-engine db copy --from runs.db --to postgres://workflows@db.example.com/runs
  workflows-engine db copy --from @runs.url --to local.db --json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.copyStore(cmd.Context(), o) },
	}
	set := cmd.Flags()
	set.StringVar(&o.from, "from", "", "copy from this `place` (default the database of the settings)")
	set.StringVar(&o.to, "to", "", "copy to this `place` (default the database of the settings)")
	set.BoolVar(&o.json, "json", false, "print as JSON")
	return cmd
}

// copyStore copies the runs of one store to another one.
func (a *app) copyStore(ctx context.Context, o copyOptions) (err error) {
	c, err := a.flags.LoadStore(a.env)
	if err != nil {
		return err
	}
	if o.from == "" && o.to == "" {
		return usage("db copy requires --from or --to").WithHint("Name a database file, or the address of a PostgreSQL server, as in --from runs.db --to @runs.url.")
	}
	from, to := c.ByFlag("--from"), c.ByFlag("--to")
	if o.from != "" {
		if from, err = c.At("--from", o.from); err != nil {
			return err
		}
	}
	if o.to != "" {
		if to, err = c.At("--to", o.to); err != nil {
			return err
		}
	}
	switch {
	case from.Store == config.Memory || to.Store == config.Memory:
		return usage("db copy requires two databases, but --store is memory").WithHint("Name both: --from and --to.")
	case from.Location() == to.Location():
		return usage("--from and --to name the same database").WithHint("Name two databases.")
	}
	from.StorePathGiven = true // even the default database must exist
	a.warn(from, nil)
	if o.to != "" {
		a.warn(to, nil)
	}
	source, err := a.openStore(ctx, sessionOptions{store: existingStore}, from)
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, source.Close()) }()
	target, err := a.openStore(ctx, sessionOptions{store: createStore}, to)
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, target.Close()) }()
	options := graph.CopyOptions{Target: to.Location(), CheckSteps: c.RunnerOptions(config.Executors{}, nil).CheckSteps}
	res, err := graph.Copy(ctx, source, target, options)
	if ctx.Err() != nil {
		fmt.Fprintln(a.stderr, "the copy has stopped: the same command completes it")
		return context.Canceled
	}
	if res == nil {
		return err
	}
	if said := a.writeCopied(from, to, res, o.json); said != nil || err != nil {
		return firstError(err, said)
	}
	if len(res.Left)+len(res.Source)+len(res.Target) > 0 {
		return silent{exitFailed}
	}
	return nil
}

// writeCopied prints what was copied, what was left and what the checks found.
func (a *app) writeCopied(from, to *config.Config, res *graph.CopyResult, asJSON bool) error {
	if asJSON {
		left := []any{}
		for _, l := range res.Left {
			j := jsonvalue.Ordered{{"execution_id", l.ExecutionID}, {"message", l.Err.Error()}}
			if p, ok := problem.As(l.Err); ok {
				j = jsonvalue.Ordered{
					{"execution_id", l.ExecutionID}, {"code", string(p.Code)}, {"message", p.Message}, {"hint", commandHint(p.Hint, l.ExecutionID)},
				}
			}
			left = append(left, j)
		}
		return writeEncoded(a.stdout, jsonvalue.Ordered{
			{"from", from.Location()}, {"to", to.Location()}, {"copied", countsJSON(res.Copied)}, {"existed", countsJSON(res.Existed)},
			{"moved", res.Moved}, {"kept_limits", append([]string{}, res.KeptLimits...)}, {"pending_deliveries", res.PendingDeliveries}, {"left", left},
			{"findings_source", findingsJSON(res.Source)}, {"findings_target", findingsJSON(res.Target)},
		})
	}
	fmt.Fprintf(a.human, "copied to %s: %s\n", to.Location(), countsText(res.Copied))
	if res.Existed != (graph.CopyCounts{}) {
		fmt.Fprintf(a.human, "there before: %s\n", countsText(res.Existed))
	}
	if len(res.KeptLimits) > 0 {
		fmt.Fprintf(a.human, "shared limits that differ, and stay as they are in %s: %s\n", to.Location(), strings.Join(res.KeptLimits, ", "))
	}
	if res.Moved > 0 {
		fmt.Fprintf(a.human, "%s moved: ended in %s, to be continued in %s\n", count(res.Moved, "active run"), from.Location(), to.Location())
	}
	if res.PendingDeliveries > 0 {
		fmt.Fprintf(a.human, "webhook deliveries pending in %s, which a process there sends: %d\n", from.Location(), res.PendingDeliveries)
	}
	for _, l := range res.Left {
		text := l.Err.Error()
		if p, ok := problem.As(l.Err); ok {
			text = string(p.Code) + ": " + p.Message + ". " + commandHint(p.Hint, l.ExecutionID)
		}
		a.say("%s %s: %s\n", a.paint.wait("left:"), plainCell(l.ExecutionID), plainCell(text))
	}
	for i, list := range [][]history.Finding{res.Source, res.Target} {
		for _, f := range list {
			at := []*config.Config{from, to}[i].Location()
			a.say("%s %s: %s %s: %s\n", a.paint.bad("finding in"), at, plainCell(f.ExecutionID), f.Code, plainCell(f.Message))
		}
	}
	return nil
}

// countsText lists what is not zero, the runs in any case.
func countsText(c graph.CopyCounts) string {
	text := []string{count(c.Runs, "run") + " with " + count(c.Records, "record")}
	for _, of := range []struct {
		n    int
		noun string
	}{
		{c.Definitions, "definition"}, {c.Limits, "shared limit"}, {c.Links, "link"}, {c.Keys, "key"},
	} {
		if of.n > 0 {
			text = append(text, count(of.n, of.noun))
		}
	}
	switch {
	case c.Deliveries == 1:
		text = append(text, "1 webhook delivery")
	case c.Deliveries > 1:
		text = append(text, fmt.Sprintf("%d webhook deliveries", c.Deliveries))
	}
	return problem.AndList(text)
}

func countsJSON(c graph.CopyCounts) jsonvalue.Ordered {
	return jsonvalue.Ordered{
		{"runs", c.Runs}, {"records", c.Records}, {"definitions", c.Definitions}, {"limits", c.Limits}, {"deliveries", c.Deliveries}, {"links", c.Links}, {"keys", c.Keys},
	}
}

func findingsJSON(list []history.Finding) []storedFindingJSON {
	out := []storedFindingJSON{}
	for _, f := range list {
		out = append(out, storedFindingJSON{ExecutionID: f.ExecutionID, Seq: f.Seq, Code: string(f.Code), Message: f.Message, Hint: f.Hint})
	}
	return out
}
