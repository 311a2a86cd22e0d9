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
)

type listOptions struct {
	phase, name, cursor string
	newer, older        time.Duration
	limit               int
	json                bool
}

func newList(a *app) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, the last changed first",
		Example: `  workflows-engine list
  workflows-engine list --phase interrupted
  workflows-engine list --name lighthouse --newer 24h --limit 100
  workflows-engine list --json | jq -r '.executions[].execution_id'`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), o) },
	}
	set := cmd.Flags()
	set.StringVar(&o.phase, "phase", "", "only runs in this phase: "+problem.OrList(history.Phases()))
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
	q := history.ListQuery{DefinitionName: o.name, Cursor: o.cursor, Limit: o.limit, Phase: history.Phase(o.phase)}
	if o.phase != "" && !slices.Contains(history.Phases(), q.Phase) {
		return q, usage("--phase: %q is not understood", o.phase).WithHint("Write %s.", problem.OrList(history.Phases()))
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
	for _, e := range page.Executions {
		rows = append(rows, []string{e.ID, dash(e.DefinitionName), string(e.Phase), dash(e.CurrentNodeID), age(e.UpdatedAt, a.now())})
	}
	if err := writeTable(w, rows); err != nil {
		return err
	}
	if page.NextCursor != "" {
		fmt.Fprintf(a.stderr, "more with: --cursor %s\n", shellQuote(page.NextCursor))
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
