package historysql

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// List returns a page of runs; see history.Store.
func (s *Store) List(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
	page, err := s.list(ctx, q)
	return page, failure("the runs could not be listed", err)
}

func (s *Store) list(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
	size, err := q.PageSize()
	if err != nil {
		return history.ListPage{}, err
	}
	from, until := spanOf(&q)
	after, behind, err := q.Position()
	if err != nil {
		return history.ListPage{}, err
	}
	if behind && from.Compare(after) < 0 {
		from = after
	}
	runs, err := s.page(ctx, &q, from, until, size+1)
	if err != nil {
		return history.ListPage{}, err
	}
	page := history.ListPage{Executions: runs}
	if len(runs) > size {
		page.Executions = runs[:size:size]
		page.NextCursor = q.CursorOf(&runs[size-1]).String()
	}
	return page, nil
}

// Count returns how many runs a query selects; see history.Store.
func (s *Store) Count(ctx context.Context, q history.ListQuery, most int) (n int, err error) {
	if err := history.CheckCount(most); err != nil {
		return 0, err
	}
	q.Oldest = false
	from, until := spanOf(&q)
	l, err := s.listing(ctx, &q)
	if err == nil && len(q.Labels) == 1 && q.Below == "" && !q.Ready && q.DefinitionName == "" && len(l.phases) == len(history.Phases()) {
		for name := range q.Labels { // few of these runs are refused, so that the bound ends the count soon
			l.label, l.indexed = name, true
		}
	}
	if err == nil && len(l.phases) > 0 {
		_, err = s.readers.row(ctx, l.count(), l.args(from, until, most), &n)
	}
	return n, failure("the runs could not be counted", err)
}

// spanOf returns the position before all runs of a query, and the last time of its runs in the order of the list.
func spanOf(q *history.ListQuery) (from history.Cursor, until int64) {
	oldest, newest := int64(math.MinInt64/2), int64(math.MaxInt64/2)
	if !q.UpdatedAfter.IsZero() {
		oldest = history.CeilMillis(q.UpdatedAfter)
	}
	if !q.UpdatedBefore.IsZero() {
		newest = q.UpdatedBefore.UnixMilli()
	}
	if q.Oldest {
		return history.Cursor{UpdatedAt: time.UnixMilli(oldest), Oldest: true}, newest
	}
	return history.Cursor{UpdatedAt: time.UnixMilli(newest)}, oldest
}

// firstStretch is how many runs of each phase are looked at first, for each run of the page, if a filter may refuse them.
const firstStretch = 4

// page reads the first runs after a position.
func (s *Store) page(ctx context.Context, q *history.ListQuery, from history.Cursor, until int64, limit int) (out []history.Execution, err error) {
	l, err := s.listing(ctx, q)
	if err != nil || len(l.phases) == 0 {
		return nil, err
	}
	read := func(from history.Cursor, until int64) error {
		return s.readers.query(ctx, l.page(), func(rows *sql.Rows) error {
			var id string
			var projection []byte
			var bytes int64
			if err := rows.Scan(&id, &projection, &bytes); err != nil {
				return err
			}
			e, err := history.ParseExecution(id, projection)
			e.Bytes = bytes
			if !slices.ContainsFunc(out, func(x history.Execution) bool { return x.ID == id }) { // it may have changed since the stretch before
				out = append(out, e)
			}
			return err
		}, l.args(from, until, limit-len(out))...)
	}
	if !l.inOrder() || !l.filtered() {
		return out, read(from, until)
	}
	for stretch := firstStretch * limit; ; {
		var end sql.NullInt64
		if _, err := s.readers.row(ctx, l.stretch(), l.args(from, until, stretch), &end); err != nil {
			return nil, err
		}
		if !end.Valid { // the phases have no more runs than that
			return out, read(from, until)
		}
		last, before := l.lastOf(end.Int64, until), len(out)
		if err := read(from, last); err != nil || len(out) >= limit {
			return out, err
		}
		// If as many pass as in this stretch, a third more than needed is read.
		stretch = min(4*stretch, max(limit, 4*stretch*(limit-len(out))/(3*max(1, len(out)-before))))
		from = history.Cursor{UpdatedAt: time.UnixMilli(last + l.step()), Oldest: q.Oldest}
	}
}

// listing selects the runs of a query. Its statements depend on the filters that the query has, not on their values.
//
// Each phase is a range of an index in the order of time, by tenths of a second. An unfiltered page merges the first runs of each range,
// including all runs within the last one's tenth of a second. If a filter may refuse runs, the ranges are read in stretches, until the page is
// full. The runs below another run are a range of ids, those with a rare label a range of labels, and ready runs a table; these are read whole.
type listing struct {
	q      *history.ListQuery
	phases []history.Phase
	// label is the rarest label, as far as counted; "" without labels. Its runs are read from the index of labels if indexed is set.
	label   string
	indexed bool
}

const (
	countLabelled = `SELECT count(*) FROM (SELECT 1 FROM run_labels INDEXED BY run_labels_by_value WHERE name = ?1 AND value = ?2 LIMIT ?3)`
	countLabel    = `SELECT count(*) FROM (SELECT 1 FROM run_labels INDEXED BY run_labels_by_value WHERE name = ?1 LIMIT ?3)`
)

func (s *Store) listing(ctx context.Context, q *history.ListQuery) (*listing, error) {
	l := &listing{q: q, phases: q.Selected()}
	fewest := s.maxLabelled
	for name, value := range q.Labels {
		text := countLabelled
		if value == "" {
			text = countLabel
		}
		n := fewest
		if q.Below == "" && !q.Ready {
			if _, err := s.readers.row(ctx, text, []any{name, value, fewest}, &n); err != nil {
				return nil, err
			}
		}
		if n < fewest || l.label == "" {
			l.label, l.indexed = name, n < fewest
			fewest = n
		}
	}
	return l, nil
}

// inOrder reports whether the runs are read in the order of time.
func (l *listing) inOrder() bool { return l.q.Below == "" && !l.q.Ready && !l.indexed }

// filtered reports whether runs in the ranges of the index may be refused.
func (l *listing) filtered() bool { return len(l.q.Labels) > 0 || l.q.Roots || l.q.Unhandled }

// args returns the arguments of the listing's statements.
func (l *listing) args(from history.Cursor, until int64, limit int) []any {
	below, behind := history.DescendantRange(l.q.Below)
	wanted := map[string]any{}
	for name, value := range l.q.Labels {
		wanted[name] = value
	}
	at := from.UpdatedAt.UnixMilli()
	return []any{limit, at, from.ExecutionID, until, l.q.DefinitionName, string(jsonvalue.Canonical(wanted)), listedAt(at), listedAt(until),
		l.label, l.q.Labels[l.label], below, behind}
}

// In the texts below, {<}, {<=}, {>=}, {max} and {DESC} are those of the order newest first.
const (
	listPage = `SELECT e.execution_id, e.projection, e.bytes
FROM (SELECT * FROM (%s) ORDER BY updated_at {DESC}, execution_id LIMIT ?1) AS page JOIN executions AS e ON e.run = page.run
ORDER BY page.updated_at {DESC}, page.execution_id LIMIT ?1`
	listRuns    = `SELECT executions.run AS run, updated_at, execution_id FROM %s AND listed_at {<=} ?7 AND listed_at {>=} %s AND ` + listBounds
	listBounds  = `updated_at {>=} ?4 AND (updated_at {<} ?2 OR updated_at = ?2 AND execution_id > ?3)`
	listFirst   = `{max}(?8, COALESCE((` + listStretch + `), ?8))`
	listStretch = `SELECT listed_at FROM %s AND listed_at {<} ?7 AND listed_at {>=} ?8 ORDER BY listed_at {DESC} LIMIT 1 OFFSET ?1 - 1`
	listCount   = `SELECT count(*) FROM (SELECT 1 FROM (%s) LIMIT ?1)`

	readyOnly     = `executions.run IN (SELECT run FROM ready)`
	rootsOnly     = `instr(execution_id, '` + history.ChildMark + `') = 0`
	unhandledOnly = `NOT (phase IN ('failed', 'cancelled') AND EXISTS (SELECT 1 FROM handled AS h WHERE h.execution_id IN ` +
		`(executions.execution_id, substr(executions.execution_id, 1, instr(executions.execution_id, '` + history.ChildMark + `') - 1))))`
	labelOnly    = `EXISTS (SELECT 1 FROM run_labels AS l WHERE l.run = executions.run AND l.name = ?9 AND (?10 = '' OR l.value = ?10))`
	labelledOnly = `NOT EXISTS (SELECT 1 FROM json_each(?6) AS wanted WHERE NOT EXISTS (SELECT 1 FROM run_labels AS l
    WHERE l.run = executions.run AND l.name = wanted.key AND (wanted.value = '' OR l.value = wanted.value)))`
)

// newestFirst and oldestFirst fill in an order.
var (
	newestFirst = strings.NewReplacer("{<}", "<", "{<=}", "<=", "{>=}", ">=", "{max}", "max", "{DESC}", "DESC")
	oldestFirst = strings.NewReplacer("{<}", ">", "{<=}", ">=", "{>=}", "<=", "{max}", "min", "{DESC}", "ASC")
)

func (l *listing) ordered(text string) string {
	if l.q.Oldest {
		return oldestFirst.Replace(text)
	}
	return newestFirst.Replace(text)
}

// lastOf returns the last time of a tenth of a second, in the order of the list; at most until.
func (l *listing) lastOf(listed, until int64) int64 {
	if l.q.Oldest {
		return min(listed+tenth-1, until)
	}
	return max(listed, until)
}

// step is from one time to the next one in the order of the list.
func (l *listing) step() int64 {
	if l.q.Oldest {
		return 1
	}
	return -1
}

// ranges returns a source of runs, as in "executions WHERE phase = 'failed'", for each range of the index; without filters if bare.
func (l *listing) ranges(bare bool) (out []string) {
	from, where := "executions INDEXED BY executions_by_phase", ""
	if l.q.DefinitionName != "" {
		where = "definition_name = ?5 AND "
	}
	switch {
	case l.q.Below != "":
		from, where = "executions INDEXED BY sqlite_autoindex_executions_1", where+"execution_id >= ?11 AND execution_id < ?12 AND "
	case l.q.Ready:
		from = "ready CROSS JOIN executions ON executions.run = ready.run"
	case l.indexed:
		from = "run_labels AS label INDEXED BY run_labels_by_value CROSS JOIN executions ON executions.run = label.run"
		where = "label.name = ?9 AND " + where
		if l.q.Labels[l.label] != "" {
			where = "label.value = ?10 AND " + where
		}
	case where != "":
		from = "executions INDEXED BY executions_by_definition"
	}
	if !bare {
		if l.q.Ready && l.q.Below != "" {
			where += readyOnly + " AND "
		}
		if l.q.Roots {
			where += rootsOnly + " AND "
		}
		if l.q.Unhandled {
			where += unhandledOnly + " AND "
		}
		if l.label != "" && !l.indexed {
			where += labelOnly + " AND "
		}
		if len(l.q.Labels) > 1 {
			where += labelledOnly + " AND "
		}
	}
	for _, p := range l.phases {
		out = append(out, fmt.Sprintf("'%s'", p))
	}
	if !l.inOrder() {
		out = []string{strings.Join(out, ", ")}
	}
	for i, phases := range out {
		out[i] = fmt.Sprintf("%s WHERE %sphase IN (%s)", from, where, phases)
	}
	return out
}

// page returns the query for the first runs after a position.
func (l *listing) page() string {
	ranges := l.ranges(false)
	for i, in := range ranges {
		end := "?8"
		if l.inOrder() && !l.filtered() {
			end = fmt.Sprintf(listFirst, in)
		}
		ranges[i] = fmt.Sprintf(listRuns, in, end)
	}
	return l.ordered(fmt.Sprintf(listPage, strings.Join(ranges, " UNION ALL ")))
}

// stretch returns the query for the tenth of a second down to which some phase has a number of runs after a position; or NULL.
func (l *listing) stretch() string {
	ranges := l.ranges(true)
	for i, in := range ranges {
		ranges[i] = "SELECT * FROM (" + fmt.Sprintf(listStretch, in) + ")"
	}
	return l.ordered("SELECT {max}(listed_at) FROM (" + strings.Join(ranges, " UNION ALL ") + ")")
}

// count returns the query for the number of runs.
func (l *listing) count() string {
	ranges := l.ranges(false)
	for i, in := range ranges {
		ranges[i] = "SELECT 1 FROM " + in
		if !l.q.UpdatedAfter.IsZero() || !l.q.UpdatedBefore.IsZero() { // only then are the rows read
			ranges[i] += " AND listed_at {<=} ?7 AND listed_at {>=} ?8 AND updated_at {>=} ?4 AND updated_at {<=} ?2"
		}
	}
	return l.ordered(fmt.Sprintf(listCount, strings.Join(ranges, " UNION ALL ")))
}
