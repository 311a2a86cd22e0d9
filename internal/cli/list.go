package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

type listOptions struct {
	phases, labels []string
	open, json     bool
	name, cursor   string
	newer, older   time.Duration
	limit          int
}

func newList(a *app) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, the last changed first",
		Example: `  workflows-engine list
  workflows-engine list --phase interrupted,failed
  workflows-engine list --open --label customer=17
  workflows-engine list --name lighthouse --newer 24h --limit 100
  workflows-engine list --json | jq -r '.executions[].execution_id'`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), o) },
	}
	set := cmd.Flags()
	set.BoolVar(&o.open, "open", false, "only runs that have not ended")
	set.StringSliceVar(&o.phases, "phase", nil, "only runs in this `phase`, or in one of several: "+problem.OrList(history.Phases()))
	registerLabels(set, &o.labels, "only runs with this label, as `KEY=VALUE` or KEY; may be repeated")
	set.StringVar(&o.name, "name", "", "only runs of the definition with this document.name")
	set.DurationVar(&o.newer, "newer", 0, "only runs changed within this `time`, as in 24h")
	set.DurationVar(&o.older, "older", 0, "only runs not changed within this `time`, as in 1h")
	set.IntVar(&o.limit, "limit", 50, "how many, at most 100")
	set.StringVar(&o.cursor, "cursor", "", "next_cursor of the page before")
	set.BoolVar(&o.json, "json", false, "print as JSON")
	var phases []string
	for _, p := range history.Phases() {
		phases = append(phases, string(p))
	}
	if err := cmd.RegisterFlagCompletionFunc("phase", cobra.FixedCompletions(phases, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is registered a few lines above
	}
	return cmd
}

// query turns the options into a query.
func (o listOptions) query(now time.Time) (history.ListQuery, error) {
	q := history.ListQuery{DefinitionName: o.name, Cursor: o.cursor, Limit: o.limit}
	for _, p := range o.phases {
		if !slices.Contains(history.Phases(), history.Phase(p)) {
			return q, usage("--phase: %q is not understood", p).WithHint("Write %s.", problem.OrList(history.Phases()))
		}
		q.Phases = append(q.Phases, history.Phase(p))
	}
	if o.open {
		if len(q.Phases) > 0 {
			return q, usage("--open and --phase exclude each other")
		}
		q.Phases = history.OpenPhases()
	}
	var err error
	if q.Labels, err = parseLabels(o.labels); err != nil {
		return q, err
	}
	if o.limit < 1 || o.limit > 100 {
		return q, usage("--limit: %d is not between 1 and 100", o.limit)
	}
	if o.newer > 0 {
		q.UpdatedAfter = now.Add(-o.newer)
	}
	if o.older > 0 {
		q.UpdatedBefore = now.Add(-o.older)
	}
	return q, nil
}

// list prints a page of runs. It only reads, so that it works beside any number of servers.
func (a *app) list(ctx context.Context, o listOptions) error {
	q, err := o.query(a.now())
	if err != nil {
		return err
	}
	return a.with(ctx, sessionOptions{bare: true, read: true}, func(s *session) error {
		page, err := s.engine.List(ctx, q)
		if err != nil {
			return err
		}
		if o.json {
			return writeEncoded(a.stdout, encodeList(page))
		}
		return a.writeList(a.human, page)
	})
}

func (a *app) writeList(w io.Writer, page history.ListPage) error {
	if len(page.Executions) == 0 {
		fmt.Fprintln(a.stderr, "no runs")
		return nil
	}
	rows := [][]string{{"ID", "NAME", "PHASE", "NODE", "AGE"}}
	titled := slices.ContainsFunc(page.Executions, func(e history.Execution) bool { return e.Title != "" })
	if titled {
		rows[0] = append(rows[0], "TITLE")
	}
	for _, e := range page.Executions {
		row := []string{e.ID, dash(e.DefinitionName), string(e.Phase), dash(e.CurrentNodeID), age(e.UpdatedAt, a.now())}
		if titled {
			row = append(row, dash(e.Title))
		}
		rows = append(rows, row)
	}
	if err := writeTable(w, rows); err != nil {
		return err
	}
	if page.NextCursor != "" {
		fmt.Fprintf(a.stderr, "more with: --cursor %s\n", shellword.Quote(page.NextCursor))
	}
	return nil
}

// dash stands for a cell without a value.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func encodeList(page history.ListPage) jsonvalue.Ordered {
	rows := make([]jsonvalue.Ordered, len(page.Executions))
	for i := range page.Executions {
		rows[i] = runjson.FullRow(&page.Executions[i])
	}
	list := jsonvalue.Ordered{{"executions", rows}}
	list.Text("next_cursor", page.NextCursor)
	return list
}
