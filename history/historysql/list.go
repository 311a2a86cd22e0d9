package historysql

import (
	"context"
	"database/sql"
	"math"
	"slices"
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
	overlay, err := s.refreshAll(ctx)
	if err == nil && q.Unhandled {
		overlay, err = s.unhandled(ctx, overlay)
	}
	if err != nil {
		return history.ListPage{}, err
	}
	runs, err := s.page(ctx, &q, from, size+1+len(overlay))
	if err != nil {
		return history.ListPage{}, err
	}
	runs = withOverlay(overlay, runs, &q, from)
	page := history.ListPage{Executions: runs}
	if len(runs) > size {
		page.Executions = runs[:size:size]
		page.NextCursor = history.CursorOf(&runs[size-1]).String()
	}
	return page, nil
}

// startOf returns the position after which the page begins: the cursor's, or the one before every run of the newest
// time.
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

// wantedLabels returns the labels of a query as JSON, and how a projection that has one of them contains that.
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

// withOverlay replaces stored projections by up-to-date ones.
func withOverlay(overlay, runs []history.Execution, q *history.ListQuery, from history.Cursor) []history.Execution {
	if len(overlay) == 0 {
		return runs
	}
	runs = slices.DeleteFunc(runs, func(e history.Execution) bool {
		return slices.ContainsFunc(overlay, func(o history.Execution) bool { return o.ID == e.ID })
	})
	for _, e := range overlay {
		if q.Matches(&e) && from.Compare(history.CursorOf(&e)) < 0 {
			runs = append(runs, e)
		}
	}
	slices.SortFunc(runs, func(a, b history.Execution) int {
		return history.CursorOf(&a).Compare(history.CursorOf(&b))
	})
	return runs
}
