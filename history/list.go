package history

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Cursor is a position in the order of List: newest first, or oldest first; runs with equal times are ordered by id, bytewise.
type Cursor struct {
	UpdatedAt   time.Time
	ExecutionID string
	// Oldest marks a position in a list that is oldest first.
	Oldest bool
}

// CursorOf returns the position of a run in a list that is newest first.
func CursorOf(e *Execution) Cursor { return Cursor{UpdatedAt: e.UpdatedAt, ExecutionID: e.ID} }

// CursorOf returns the position of a run in the order of the query.
func (q *ListQuery) CursorOf(e *Execution) Cursor {
	c := CursorOf(e)
	c.Oldest = q.Oldest
	return c
}

// oldestMark begins a cursor of a list that is oldest first.
const oldestMark = "oldest|"

// ParseCursor parses the result of String. The error has code INVALID_LIST_CURSOR.
func ParseCursor(s string) (Cursor, error) {
	rest, oldest := strings.CutPrefix(s, oldestMark)
	at, id, found := strings.Cut(rest, "|")
	if found && id != "" {
		if t, err := ParseTimestamp(at); err == nil && t.Year() >= 0 && t.Year() <= 9999 { // the range that String writes
			return Cursor{UpdatedAt: t, ExecutionID: id, Oldest: oldest}, nil
		}
	}
	return Cursor{}, InvalidCursor(s)
}

// InvalidCursor returns the error INVALID_LIST_CURSOR for a cursor.
func InvalidCursor(s string) error {
	return problem.New(problem.InvalidListCursor, "invalid cursor %q", s).
		WithHint("Pass the next cursor of the previous page unchanged, or none for the first page.")
}

// String returns "<updated_at>|<execution_id>" (spec: execution, 11.3), after "oldest|" in a list that is oldest first.
func (c Cursor) String() string {
	s := FormatTimestamp(c.UpdatedAt) + "|" + c.ExecutionID
	if c.Oldest {
		s = oldestMark + s
	}
	return s
}

// Compare compares positions in the order of c's list.
func (c Cursor) Compare(d Cursor) int {
	times := d.UpdatedAt.Compare(c.UpdatedAt)
	if c.Oldest {
		times = -times
	}
	return cmp.Or(times, cmp.Compare(c.ExecutionID, d.ExecutionID))
}

// Position returns the position that the query's cursor names; ok is false without a cursor. A cursor of the other order is
// INVALID_LIST_CURSOR.
func (q *ListQuery) Position() (c Cursor, ok bool, err error) {
	if q.Cursor == "" {
		return c, false, nil
	}
	c, err = ParseCursor(q.Cursor)
	if err == nil && c.Oldest != q.Oldest {
		err = InvalidCursor(q.Cursor)
	}
	return c, err == nil, err
}

const (
	defaultListLimit = 50
	maxListLimit     = 100
)

// PageSize returns the page size of the query: 50 by default, at most 100 (spec: execution, 11.3). Another limit is a VALIDATION_ERROR,
// because a page shorter than requested would look like the last one.
func (q *ListQuery) PageSize() (int, error) { return PageSize(q.Limit) }

// PageSize returns the page size for a limit, as ListQuery.PageSize does.
func PageSize(limit int) (int, error) {
	switch {
	case limit < 0 || limit > maxListLimit:
		return 0, problem.New(problem.ValidationError, "the limit of a list must be 1 to %d, not %d", maxListLimit, limit).
			WithHint("Read further pages with the cursor.")
	case limit == 0:
		return defaultListLimit, nil
	}
	return limit, nil
}

// CheckCount rejects a negative bound of Store.Count with VALIDATION_ERROR.
func CheckCount(most int) error {
	if most < 0 {
		return problem.New(problem.ValidationError, "the bound of a count must not be negative: %d", most)
	}
	return nil
}

// Selected returns the selected phases in the order of Phases.
func (q *ListQuery) Selected() []Phase {
	if q.Phase == "" && len(q.Phases) == 0 {
		return Phases()
	}
	return slices.DeleteFunc(Phases(), func(p Phase) bool { return p != q.Phase && !slices.Contains(q.Phases, p) })
}

// Matches reports whether a run matches the query's filters, apart from Unhandled and Ready. It ignores the cursor.
func (q *ListQuery) Matches(e *Execution) bool {
	for name, value := range q.Labels {
		if has, ok := e.Labels[name]; !ok || value != "" && value != has {
			return false
		}
	}
	return slices.Contains(q.Selected(), e.Phase) &&
		(q.DefinitionName == "" || e.DefinitionName == q.DefinitionName) &&
		(q.Below == "" || Descends(e.ID, q.Below)) &&
		!(q.Roots && strings.Contains(e.ID, ChildMark)) &&
		(q.UpdatedAfter.IsZero() || !e.UpdatedAt.Before(q.UpdatedAfter)) &&
		(q.UpdatedBefore.IsZero() || !e.UpdatedAt.After(q.UpdatedBefore))
}

// Each calls f for every run of a store in a phase, or in all phases if phase is "". It returns the first error of f or of the store.
func Each(ctx context.Context, store Store, phase Phase, f func(*Execution) error) error {
	q := ListQuery{Phase: phase, Limit: 100}
	for {
		page, err := store.List(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Executions {
			if err := f(&page.Executions[i]); err != nil {
				return err
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return nil
		}
	}
}
