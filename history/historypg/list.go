package historypg

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/workflows-engine/workflows-engine/history"
)

const doingList = "the runs could not be listed"

// List returns a page of runs; see history.Store.
func (s *Store) List(ctx context.Context, q history.ListQuery) (page history.ListPage, err error) {
	size, err := q.PageSize()
	if err != nil {
		return page, err
	}
	from, until := spanOf(&q)
	after, behind, err := q.Position()
	if err != nil {
		return page, err
	}
	if behind && from.Compare(after) < 0 {
		from = after
	}
	err = s.read(ctx, doingList, func(in queries) error {
		page = history.ListPage{}
		l, err := s.listing(ctx, in, &q)
		if err != nil || len(l.phases) == 0 {
			return err
		}
		st := l.page(from, until, size+1)
		return each(ctx, in, s.texts.of(st.text.String()), func(row pgx.Rows) error {
			var id, projection string
			var bytes int64
			if err := row.Scan(&id, &projection, &bytes); err != nil {
				return err
			}
			if len(page.Executions) == size {
				page.NextCursor = q.CursorOf(&page.Executions[size-1]).String()
				return nil
			}
			e, err := parseExecution(unescaped(id), projection, bytes)
			page.Executions = append(page.Executions, e)
			return err
		}, st.args...)
	})
	if err != nil {
		return history.ListPage{}, err
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
	err = s.read(ctx, "the runs could not be counted", func(in queries) error {
		l, err := s.listing(ctx, in, &q)
		if err != nil || len(l.phases) == 0 {
			return err
		}
		st := l.count(from, until, most)
		var counted int64
		_, err = first(ctx, in, s.texts.of(st.text.String()), st.args, &counted)
		n = int(counted)
		return err
	})
	return n, err
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

// listing selects the runs of a query. Each phase is a range of an index in the order of time, by seconds, and is read until the page is full. The
// runs below another run are a range of ids, those with a rare label a range of labels, and ready runs a table, if they are few; these are read
// whole.
type listing struct {
	q      *history.ListQuery
	phases []history.Phase
	// label is a label that few runs have, if labelled is set. ready is set if few runs are ready.
	label           string
	labelled, ready bool
}

// maxWhole is the largest number of runs with a label, or of ready runs, that are read whole. More are found in the order of time.
const maxWhole = 4000

func (s *Store) listing(ctx context.Context, in queries, q *history.ListQuery) (*listing, error) {
	l := &listing{q: q, phases: q.Selected()}
	fewest := int64(maxWhole)
	if q.Below != "" {
		return l, nil
	}
	if q.Ready {
		var n int64
		if _, err := first(ctx, in, s.texts.of(countReady), []any{fewest}, &n); err != nil {
			return nil, err
		}
		if l.ready = n < fewest; l.ready {
			return l, nil
		}
	}
	for name, value := range q.Labels {
		var st statement
		st.add("SELECT count(*) FROM (SELECT 1 FROM @run_labels WHERE name = ", st.arg(key(name), "text"))
		if value != "" {
			st.add(" AND value = ", st.arg(key(value), "text"))
		}
		st.add(" LIMIT ", st.arg(fewest, "bigint"), ") AS x")
		var n int64
		if _, err := first(ctx, in, s.texts.of(st.text.String()), st.args, &n); err != nil {
			return nil, err
		}
		if n < fewest {
			l.label, l.labelled, fewest = name, true, n
		}
	}
	return l, nil
}

const countReady = `SELECT count(*) FROM (SELECT 1 FROM @ready LIMIT $1::bigint) AS x`

const unhandledOnly = `NOT (r.phase IN ('failed', 'cancelled') AND EXISTS (SELECT 1 FROM @handled AS h
    WHERE h.execution_id = r.execution_id OR h.execution_id = split_part(r.execution_id, '` + history.ChildMark + `', 1)))`

// filter adds the conditions of the query, but for those of phase and time.
func (l *listing) filter(st *statement) {
	q := l.q
	if q.DefinitionName != "" {
		st.add(" AND r.definition_name = ", st.arg(key(q.DefinitionName), "text"))
	}
	if q.Below != "" {
		from, to := history.DescendantRange(key(q.Below))
		st.add(" AND r.execution_id >= ", st.arg(from, "text"), " AND r.execution_id < ", st.arg(to, "text"))
	}
	if q.Roots {
		st.add(" AND strpos(r.execution_id, '", history.ChildMark, "') < 1") // the planner expects few rows of an equation, and many of this
	}
	if q.Ready && !l.ready {
		st.add(" AND EXISTS (SELECT 1 FROM @ready AS x WHERE x.run = r.run)")
	}
	if q.Unhandled {
		st.add(" AND ", unhandledOnly)
	}
	for _, name := range slices.Sorted(maps.Keys(q.Labels)) {
		if l.labelled && name == l.label {
			continue // the source has it
		}
		st.add(" AND EXISTS (SELECT 1 FROM @run_labels AS l WHERE l.run = r.run AND l.name = ", st.arg(key(name), "text"))
		if value := q.Labels[name]; value != "" {
			st.add(" AND l.value = ", st.arg(key(value), "text"))
		}
		st.add(")")
	}
}

// source adds the table that the runs are read from, and phases as the condition of their phase.
func (l *listing) source(st *statement, phases string) {
	switch {
	case l.ready:
		st.add("FROM @ready AS x JOIN @runs AS r ON r.run = x.run WHERE ", phases)
	case l.labelled:
		st.add("FROM @run_labels AS x JOIN @runs AS r ON r.run = x.run WHERE x.name = ", st.arg(key(l.label), "text"))
		if value := l.q.Labels[l.label]; value != "" {
			st.add(" AND x.value = ", st.arg(key(value), "text"))
		}
		st.add(" AND ", phases)
	default:
		st.add("FROM @runs AS r WHERE ", phases)
	}
}

// ranges returns the conditions of phase: one for each range of the index, or one for all if the runs are read whole.
func (l *listing) ranges() []string {
	var out []string
	for _, p := range l.phases {
		out = append(out, "r.phase = '"+string(p)+"'")
	}
	if l.labelled || l.ready || l.q.Below != "" {
		out = []string{"(" + strings.Join(out, " OR ") + ")"}
	}
	return out
}

// page returns the query for the first runs after a position.
func (l *listing) page(from history.Cursor, until int64, limit int) *statement {
	var st statement
	at := from.UpdatedAt.UnixMilli()
	before, beforeOr, after, order := "<", "<=", ">=", "DESC"
	if l.q.Oldest {
		before, beforeOr, after, order = ">", ">=", "<=", "ASC"
	}
	start, id, end := st.arg(at, "bigint"), st.arg(key(from.ExecutionID), "text"), st.arg(until, "bigint")
	startListed, endListed, size := st.arg(listedAt(at), "bigint"), st.arg(listedAt(until), "bigint"), st.arg(int64(limit), "bigint")
	st.add("SELECT execution_id, projection, bytes FROM (")
	for i, phases := range l.ranges() {
		if i > 0 {
			st.add(" UNION ALL ")
		}
		st.add("(SELECT r.execution_id, r.projection, r.bytes, r.updated_at ")
		l.source(&st, phases)
		l.filter(&st)
		st.add(" AND r.listed_at ", beforeOr, " ", startListed, " AND r.listed_at ", after, " ", endListed, " AND r.updated_at ", after, " ", end,
			" AND (r.updated_at ", before, " ", start, " OR r.updated_at = ", start, " AND r.execution_id > ", id, ")",
			" ORDER BY r.listed_at ", order, ", r.updated_at ", order, ", r.execution_id LIMIT ", size, ")")
	}
	st.add(") AS r ORDER BY updated_at ", order, ", execution_id LIMIT ", size)
	return &st
}

// count returns the query for the number of runs, at most most.
func (l *listing) count(from history.Cursor, until int64, most int) *statement {
	var st statement
	size := st.arg(int64(most), "bigint")
	st.add("SELECT count(*) FROM (SELECT 1 FROM (")
	for i, phases := range l.ranges() {
		if i > 0 {
			st.add(" UNION ALL ")
		}
		st.add("(SELECT 1 ")
		l.source(&st, phases)
		l.filter(&st)
		if !l.q.UpdatedAfter.IsZero() || !l.q.UpdatedBefore.IsZero() { // only then are the rows read
			at := from.UpdatedAt.UnixMilli()
			st.add(" AND r.listed_at <= ", st.arg(listedAt(at), "bigint"), " AND r.listed_at >= ", st.arg(listedAt(until), "bigint"),
				" AND r.updated_at <= ", st.arg(at, "bigint"), " AND r.updated_at >= ", st.arg(until, "bigint"))
		}
		st.add(" LIMIT ", size, ")")
	}
	st.add(") AS x LIMIT ", size, ") AS x")
	return &st
}
