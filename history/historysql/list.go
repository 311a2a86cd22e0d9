package historysql

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// List returns a page of runs, newest first; see history.Store.
func (s *Store) List(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
	page, err := s.list(ctx, q)
	return page, failure("the runs could not be listed", err)
}

func (s *Store) list(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
	size, err := q.PageSize()
	if err != nil {
		return history.ListPage{}, err
	}
	from, err := startOf(&q)
	if err != nil {
		return history.ListPage{}, err
	}
	runs, err := s.page(ctx, &q, from, size+1)
	if err != nil {
		return history.ListPage{}, err
	}
	page := history.ListPage{Executions: runs}
	if len(runs) > size {
		page.Executions = runs[:size:size]
		page.NextCursor = history.CursorOf(&runs[size-1]).String()
	}
	return page, nil
}

// startOf returns the position before the page: the cursor, or the position before all runs of the newest time.
func startOf(q *history.ListQuery) (history.Cursor, error) {
	newest := history.Cursor{UpdatedAt: time.UnixMilli(math.MaxInt64 / 2)}
	if !q.UpdatedBefore.IsZero() {
		newest.UpdatedAt = time.UnixMilli(q.UpdatedBefore.UnixMilli())
	}
	if q.Cursor == "" {
		return newest, nil
	}
	c, err := history.ParseCursor(q.Cursor)
	if err == nil && c.Compare(newest) < 0 {
		c = newest
	}
	return c, err
}

// page reads the first runs after a position.
func (s *Store) page(ctx context.Context, q *history.ListQuery, from history.Cursor, limit int) ([]history.Execution, error) {
	oldest := int64(math.MinInt64 / 2)
	if !q.UpdatedAfter.IsZero() {
		oldest = history.CeilMillis(q.UpdatedAfter)
	}
	newest := from.UpdatedAt.UnixMilli()
	phases := q.Selected()
	if len(phases) == 0 {
		return nil, nil
	}
	text := listStatement(phases, q.DefinitionName != "", len(q.Labels) > 0, q.Below != "", q.Roots, q.Unhandled)
	below, behind := history.DescendantRange(q.Below)
	labels, one := wantedLabels(q)
	var out []history.Execution
	err := s.readers.query(ctx, text, func(rows *sql.Rows) error {
		var id string
		var projection []byte
		var bytes int64
		if err := rows.Scan(&id, &projection, &bytes); err != nil {
			return err
		}
		e, err := history.ParseExecution(id, projection)
		e.Bytes = bytes
		out = append(out, e)
		return err
	}, limit, newest, from.ExecutionID, oldest, q.DefinitionName, labels, listedAt(newest), listedAt(oldest), one, below, behind)
	return out, err
}

// wantedLabels returns the labels of a query as JSON, and a text that every projection with one of them contains.
func wantedLabels(q *history.ListQuery) (labels, one string) {
	wanted := map[string]any{}
	for name, value := range q.Labels {
		wanted[name] = value
		one = string(jsonvalue.Canonical(name)) + ":"
		if value != "" {
			one += string(jsonvalue.Canonical(value))
		}
	}
	return string(jsonvalue.Canonical(wanted)), one
}

const (
	listPage = `SELECT e.execution_id, e.projection, e.bytes
FROM (%s) AS page JOIN executions AS e ON e.run = page.run
ORDER BY page.updated_at DESC, page.execution_id LIMIT ?1`
	listRange = `SELECT run, updated_at, execution_id FROM executions INDEXED BY %[1]s
WHERE %[2]s AND listed_at <= ?7 AND listed_at >= max(?8, COALESCE((
    SELECT listed_at FROM executions INDEXED BY %[1]s WHERE %[2]s AND listed_at < ?7 ORDER BY listed_at DESC LIMIT 1 OFFSET ?1 - 1), ?8))
AND updated_at >= ?4 AND (updated_at < ?2 OR updated_at = ?2 AND execution_id > ?3)`
	listEach = `SELECT run, updated_at, execution_id FROM executions INDEXED BY %[1]s
WHERE %[2]s AND listed_at <= ?7 AND listed_at >= ?8
AND updated_at >= ?4 AND (updated_at < ?2 OR updated_at = ?2 AND execution_id > ?3)
AND instr(projection, ?9) AND NOT EXISTS (
    SELECT 1 FROM json_each(?6) AS wanted WHERE NOT EXISTS (
        SELECT 1 FROM json_each(projection, '$.labels') AS label
        WHERE label.key = wanted.key AND (wanted.value = '' OR label.value = wanted.value)))`
)

// listStatement returns the query for a page of runs in some phases. The flags add filters: by definition, by labels, below a run, without
// subworkflows, without handled runs.
//
// Each phase is a range of an index. The page merges the first runs of each range, including all runs within the last one's tenth of a
// second. Labels are in no index, so they are checked on each run of the ranges. The runs below another run are a range of ids, and each is
// checked too.
func listStatement(phases []history.Phase, definition, labels, below, roots, unhandled bool) string {
	index, filter, text := "executions_by_phase", "", listRange
	if definition {
		index, filter = "executions_by_definition", "definition_name = ?5 AND "
	}
	if labels || below || roots || unhandled {
		text = listEach
	}
	if roots {
		filter += "instr(execution_id, '" + history.ChildMark + "') = 0 AND "
	}
	if unhandled {
		filter += "NOT (phase IN ('failed', 'cancelled') AND EXISTS (SELECT 1 FROM handled AS h WHERE h.execution_id IN " +
			"(executions.execution_id, substr(executions.execution_id, 1, instr(executions.execution_id, '" + history.ChildMark + "') - 1)))) AND "
	}
	ranges := make([]string, len(phases))
	for i, p := range phases {
		ranges[i] = fmt.Sprintf("'%s'", p)
	}
	if below {
		index, filter = "sqlite_autoindex_executions_1", filter+"execution_id >= ?10 AND execution_id < ?11 AND "
		ranges = []string{strings.Join(ranges, ", ")}
	}
	for i, in := range ranges {
		ranges[i] = fmt.Sprintf(text, index, fmt.Sprintf("%sphase IN (%s)", filter, in))
	}
	page := "SELECT * FROM (" + strings.Join(ranges, " UNION ALL ") + ") ORDER BY updated_at DESC, execution_id LIMIT ?1"
	return fmt.Sprintf(listPage, page)
}
