package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

type listOptions struct {
	phases, labels []string
	open, json     bool
	tree, roots    bool
	unhandled      bool
	queued         bool
	name, cursor   string
	newer, older   time.Duration
	limit          int
}

func newList(a *app) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs",
		Long: `List runs, the last changed first. An active run shows its waits: the time of a timer, the start of a question. A failed run shows
the code of its error and its retries; with a completed retry, or a mark of the command handle, it is handled: --unhandled leaves it
out. --tree lists subworkflows below their parents.

On a terminal columns are cut to its width, and generated ids are shortened to a prefix that other commands accept.`,
		Example: `  workflows-engine list
  workflows-engine list --phase interrupted,failed
  workflows-engine list --phase failed --unhandled
  workflows-engine list --queued
  workflows-engine list --open --label customer=17
  workflows-engine list --tree --newer 1h
  workflows-engine list --name lighthouse --newer 24h --limit 100
  workflows-engine list --json | jq -r '.executions[].execution_id'`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), o) },
	}
	set := cmd.Flags()
	set.BoolVar(&o.open, "open", false, "list active runs only")
	set.BoolVar(&o.queued, "queued", false, "list only runs that wait for a worker (see queue)")
	set.StringSliceVar(&o.phases, "phase", nil, "list only runs in this `phase`; may be repeated: "+problem.OrList(history.Phases()))
	registerLabels(set, &o.labels, "list only runs with this label, as `KEY=VALUE` or KEY; may be repeated")
	set.StringVar(&o.name, "name", "", "list only runs of the definition with this document.`name`")
	registerTime(set, &o.newer, "newer", "list only runs changed within this `time`, as in 24h")
	registerTime(set, &o.older, "older", "list only runs not changed within this `time`, as in 1h")
	set.IntVar(&o.limit, "limit", 50, "list at most this `number` of runs, up to 100")
	set.StringVar(&o.cursor, "cursor", "", "continue from this `cursor`, the next_cursor of the previous page")
	set.BoolVar(&o.roots, "roots", false, "leave out subworkflows")
	set.BoolVar(&o.unhandled, "unhandled", false, "leave out runs marked as handled (see handle)")
	set.BoolVar(&o.tree, "tree", false, "list subworkflows below their parents")
	set.BoolVar(&o.json, "json", false, "print as JSON")
	cmd.PreRunE = exclusive("tree", "json")
	a.completeLabels(cmd, "label")
	var phases []string
	for _, p := range history.Phases() {
		phases = append(phases, string(p))
	}
	if err := cmd.RegisterFlagCompletionFunc("phase", cobra.FixedCompletions(phases, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is registered a few lines above
	}
	return cmd
}

// registerTime adds a flag that takes a time above 0. Without the flag the time stays 0.
func registerTime(set *pflag.FlagSet, into *time.Duration, name, help string) {
	set.Func(name, help, func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return errors.New("write a time above 0 with its unit, as in 30m or 24h")
		}
		*into = d
		return nil
	})
}

// query turns the options into a query.
func (o listOptions) query(now time.Time) (history.ListQuery, error) {
	q := history.ListQuery{DefinitionName: o.name, Cursor: o.cursor, Limit: o.limit, Roots: o.roots, Unhandled: o.unhandled, Ready: o.queued}
	for _, p := range o.phases {
		if !slices.Contains(history.Phases(), history.Phase(p)) {
			return q, usage("invalid value %q for --phase", p).WithHint("Write %s.", problem.OrList(history.Phases()))
		}
		q.Phases = append(q.Phases, history.Phase(p))
	}
	if o.open {
		if len(q.Phases) > 0 {
			return q, usage("--open and --phase cannot be given together")
		}
		q.Phases = history.OpenPhases()
	}
	var err error
	if q.Labels, err = parseLabels(o.labels); err != nil {
		return q, err
	}
	if o.limit < 1 || o.limit > 100 {
		return q, usage("--limit must be from 1 to 100, found %d", o.limit)
	}
	if o.newer > 0 {
		q.UpdatedAfter = now.Add(-o.newer)
	}
	if o.older > 0 {
		q.UpdatedBefore = now.Add(-o.older)
	}
	return q, nil
}

// list prints a page of runs.
func (a *app) list(ctx context.Context, o listOptions) error {
	q, err := o.query(a.now())
	if err != nil {
		return err
	}
	return a.with(ctx, sessionOptions{store: readOnlyStore, executors: noExecutors}, func(s *session) error {
		page, err := s.engine.List(ctx, q)
		if err != nil {
			return err
		}
		failures, err := failuresOf(ctx, s.engine, page.Executions)
		if err != nil {
			return err
		}
		if o.json {
			return writeEncoded(a.stdout, encodeList(page, failures))
		}
		rows := make([]listed, len(page.Executions))
		for i := range page.Executions {
			rows[i] = listed{Execution: page.Executions[i], failure: failures[i]}
		}
		if o.tree {
			if rows, err = inTrees(ctx, s.engine, rows); err != nil {
				return err
			}
		}
		left, err := s.unattended(ctx, a.now(), rows)
		if err != nil {
			return err
		}
		places, err := s.places(ctx, rows)
		if err != nil {
			return err
		}
		if err := a.writeList(rows, page.NextCursor, left, places); err != nil {
			return err
		}
		a.writeUnattended(s, left, places)
		return nil
	})
}

// failure describes why a run failed: the code of the error and the node, which need not be the last one that ran.
type failure struct{ code, node string }

// failuresOf returns why runs failed: the rows of a list do not contain it.
func failuresOf(ctx context.Context, e graph.Engine, runs []history.Execution) ([]failure, error) {
	failures := make([]failure, len(runs))
	for i := range runs {
		if runs[i].Phase != history.PhaseFailed {
			continue
		}
		run, err := e.Status(ctx, graph.StatusRequest{ExecutionID: runs[i].ID})
		if errors.Is(err, problem.ExecutionNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		failures[i] = failure{run.ErrorCode, run.ErrorNodeID}
	}
	return failures, nil
}

// listed is a row of a list.
type listed struct {
	history.Execution
	failure
	depth int
}

// inTrees puts subworkflows below the run that started them, if it is in the list.
func inTrees(ctx context.Context, e graph.Engine, rows []listed) ([]listed, error) {
	var roots []string
	for i := range rows {
		if rows[i].Parent == "" && rows[i].InTree() {
			roots = append(roots, rows[i].ID)
		}
	}
	found, err := familiesOf(ctx, e, roots)
	if err != nil {
		return nil, err
	}
	var trees []listed
	var below []history.Execution
	for _, row := range rows {
		if row.Parent != "" && slices.Contains(roots, history.Root(row.ID)) {
			continue
		}
		trees = append(trees, row)
		found.below(row.ID, 1, func(x *history.Execution, depth int) {
			trees = append(trees, listed{Execution: *x, depth: depth})
			below = append(below, *x)
		})
	}
	failures, err := failuresOf(ctx, e, below)
	if err != nil {
		return nil, err
	}
	for i := range trees {
		if trees[i].depth > 0 {
			trees[i].failure, failures = failures[0], failures[1:]
		}
	}
	return trees, nil
}

// narrow is the width below which a terminal has no room for both a name and a title, or an error and a node.
const narrow = 100

// listColumn is a column of the list. keep is the width that it keeps when a terminal is too narrow (fitted), 0 for one that is never cut.
// cell returns the text of the run at place i, which may be empty.
type listColumn struct {
	header string
	keep   int
	shown  bool
	cell   func(i int, e *listed) string
}

// writeList prints rows. left lists those runs, subworkflows included, that have no owner; places holds what ready ones wait for.
func (a *app) writeList(list []listed, cursor string, left []history.Unattended, places map[string]string) error {
	if len(list) == 0 {
		fmt.Fprintln(a.stderr, "no runs")
		return nil
	}
	columns := a.columns()
	isNarrow := columns > 0 && columns < narrow
	titled := !isNarrow && slices.ContainsFunc(list, func(e listed) bool { return e.Title != "" })
	failed := slices.ContainsFunc(list, func(e listed) bool { return e.code != "" })
	waits := make([]string, len(list))
	for i := range list {
		waits[i] = cmp.Or(places[list[i].ID], waitsText(&list[i].Execution, left))
	}
	waiting := slices.ContainsFunc(waits, func(text string) bool { return text != "" })
	tied := !isNarrow && slices.ContainsFunc(list, func(e listed) bool { return lineageText(&e.Lineage) != "" })
	node := "NODE"
	if isNarrow && failed {
		node += ", ERROR"
	}
	if isNarrow && waiting {
		node += ", WAITS FOR"
	}
	shown := []listColumn{
		{"ID", 0, true, func(_ int, e *listed) string { return e.indentedID(columns > 0) }},
		{"NAME", 8, true, func(_ int, e *listed) string {
			if isNarrow {
				return cmp.Or(e.Title, e.DefinitionName)
			}
			return e.DefinitionName
		}},
		{"PHASE", 11, true, func(_ int, e *listed) string { return phaseText(&e.Execution) }},
		{node, 12, true, func(i int, e *listed) string {
			at := cmp.Or(e.node, e.CurrentNodeID)
			if isNarrow {
				return cmp.Or(e.code, waits[i], at)
			}
			return at
		}},
		{"AGE", 0, true, func(_ int, e *listed) string { return age(e.UpdatedAt, a.now()) }},
		{"WAITS FOR", 24, waiting && !isNarrow, func(i int, _ *listed) string { return waits[i] }},
		{"ERROR", 20, failed && !isNarrow, func(_ int, e *listed) string { return e.code }},
		{"RETRIES", 16, tied, func(_ int, e *listed) string { return lineageText(&e.Lineage) }},
		{"TITLE", 12, titled, func(_ int, e *listed) string { return e.Title }},
	}
	rows, keep := make([][]string, len(list)+1), map[string]int{}
	for _, c := range shown {
		if !c.shown {
			continue
		}
		if c.keep > 0 {
			keep[c.header] = c.keep
		}
		rows[0] = append(rows[0], c.header)
		for i := range list {
			rows[i+1] = append(rows[i+1], dash(c.cell(i, &list[i])))
		}
	}
	if err := writeTable(a.human, fitted(rows, columns, keep)); err != nil {
		return err
	}
	if cursor != "" {
		a.say("more with: --cursor %s\n", shellword.Quote(cursor))
	}
	return nil
}

// lineageText describes in one line the retries of a run, and whether it is handled.
func lineageText(l *history.Lineage) string {
	var parts []string
	if h := l.Handled; h != nil && h.Retry == "" {
		parts = append(parts, "handled: "+plainCell(h.Note))
	}
	retry, phase, others := "", history.PhaseCompleted, len(l.Retries)-1
	if others >= 0 {
		retry, phase = l.Retries[others].To, l.Retries[others].Phase
	}
	if h := l.Handled; h != nil && h.Retry != "" { // of the run, or of a retry of it
		if !slices.ContainsFunc(l.Retries, func(r history.Link) bool { return r.To == h.Retry }) {
			others++
		}
		retry, phase = h.Retry, history.PhaseCompleted
	}
	if retry != "" {
		text := "retried by " + retry + " (" + string(phase) + ")"
		if others > 0 {
			text += " and " + count(others, "other")
		}
		parts = append(parts, text)
	}
	if l.RetryOf != "" {
		parts = append(parts, "retry of "+l.RetryOf)
	}
	return strings.Join(parts, "; ")
}

// indentedID returns the id indented below its parent's, shortened to the part that differs.
func (e *listed) indentedID(short bool) string {
	id := e.ID
	if short && uuidBegins.MatchString(id) {
		id = id[:shownOfUUID]
	}
	if e.depth == 0 {
		return id
	}
	if short {
		id = strings.TrimPrefix(e.ID, e.Parent)
	}
	return strings.Repeat("  ", e.depth-1) + "└ " + id
}

// dash returns a dash for an empty cell.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func encodeList(page history.ListPage, failures []failure) jsonvalue.Ordered {
	rows := make([]jsonvalue.Ordered, len(page.Executions))
	for i := range page.Executions {
		rows[i] = runjson.FullRow(&page.Executions[i])
		rows[i].Text("code", failures[i].code)
		rows[i].Text("failed_node_id", failures[i].node)
	}
	list := jsonvalue.Ordered{{"executions", rows}}
	list.Text("next_cursor", page.NextCursor)
	return list
}

// registerLabels adds the flag --label.
func registerLabels(flags *pflag.FlagSet, labels *[]string, usage string) {
	flags.StringArrayVar(labels, "label", nil, usage)
}

// parseLabels reads labels of the form KEY=VALUE, or KEY for one without a value.
func parseLabels(texts []string) (map[string]string, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	labels := make(map[string]string, len(texts))
	for _, text := range texts {
		name, value, _ := strings.Cut(text, "=")
		if _, twice := labels[name]; twice || name == "" {
			return nil, usage("invalid or duplicate value %q for --label", text).WithHint("Write KEY=VALUE, each key once.")
		}
		labels[name] = value
	}
	return labels, nil
}

// families maps runs to the subworkflows that they started, in the order of their start.
type families map[string][]history.Execution

// familiesOf finds the subworkflows below some runs.
func familiesOf(ctx context.Context, e graph.Engine, roots []string) (families, error) {
	f := families{}
	for _, root := range roots {
		for q := (history.ListQuery{Below: root, Limit: 100}); ; {
			page, err := e.List(ctx, q)
			if err != nil {
				return nil, err
			}
			for _, x := range page.Executions {
				f[x.Parent] = append(f[x.Parent], x)
			}
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				break
			}
		}
	}
	for _, children := range f {
		slices.SortFunc(children, func(a, b history.Execution) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
		})
	}
	return f, nil
}

// below visits the subworkflows below a run, each before its own subworkflows.
func (f families) below(id string, depth int, each func(x *history.Execution, depth int)) {
	for i := range f[id] {
		each(&f[id][i], depth)
		f.below(f[id][i].ID, depth+1, each)
	}
}

// phaseText returns the phase of a run as every command prints it and list --phase accepts it.
func phaseText(x *history.Execution) string { return string(x.Phase) }

// waitsText describes in a few words the wait of a run, and whether the run or a subworkflow has no owner.
func waitsText(x *history.Execution, left []history.Unattended) string {
	var of []history.Unattended
	for _, u := range left {
		if u.ExecutionID == x.ID || x.Parent == "" && history.Root(u.ExecutionID) == x.ID {
			of = append(of, u)
		}
	}
	if len(of) > 0 {
		return unattendedText(of)
	}
	return runjson.WaitsFor(x)
}

// unattendedText describes the first overdue timer, or a missing owner.
func unattendedText(left []history.Unattended) string {
	for _, u := range left {
		if !u.Due.IsZero() {
			return "timer overdue since " + timeText(u.Due) + "; no owner"
		}
	}
	return "no owner"
}

// unattended returns the runs without an owner among the rows of a list and the subworkflows of root runs.
func (s *session) unattended(ctx context.Context, now time.Time, rows []listed) ([]history.Unattended, error) {
	shown := map[string]bool{}
	for i := range rows {
		shown[rows[i].ID] = !rows[i].Phase.Terminal()
	}
	return history.FindUnattended(ctx, s.store, now, func(id string) bool { return shown[id] || shown[history.Root(id)] })
}

// places describes what the ready runs among the rows of a list wait for, by their ids.
func (s *session) places(ctx context.Context, rows []listed) (map[string]string, error) {
	queue, ok := history.As[history.Queue](s.store)
	if !ok {
		return nil, nil
	}
	f, err := s.fleet(ctx)
	if err != nil || len(f.Lanes) == 0 {
		return nil, err
	}
	places := map[string]string{}
	for i := range rows {
		if rows[i].Phase != history.PhaseRunning {
			continue
		}
		place, ready, err := queue.Place(ctx, rows[i].ID)
		if err != nil {
			return nil, err
		}
		if ready {
			places[rows[i].ID] = f.PlaceText(place)
		}
	}
	return places, nil
}

// writeUnattended prints the command that recovers runs without an owner. Runs that wait for a worker have a place and need one, not this command.
func (a *app) writeUnattended(s *session, left []history.Unattended, places map[string]string) {
	roots := map[string]bool{}
	left = slices.DeleteFunc(slices.Clone(left), func(u history.Unattended) bool { return places[u.ExecutionID] != "" })
	for _, u := range left {
		roots[history.Root(u.ExecutionID)] = true
	}
	switch len(roots) {
	case 0:
	case 1:
		a.say("run %s has no owner; recover it with:\n  %s\n", history.Root(left[0].ExecutionID),
			s.command("recover", history.Root(left[0].ExecutionID)))
	default:
		a.say("no owner for %s; recover them with:\n  %s\n", count(len(roots), "of these run"), shellword.Line(append([]string{program, "recover"}, s.repeat...)...))
	}
}
