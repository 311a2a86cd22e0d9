package history

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Cursor is a position in the order of List: newest first; runs with equal times are ordered by id, bytewise.
type Cursor struct {
	UpdatedAt   time.Time
	ExecutionID string
}

// CursorOf returns the position of a run.
func CursorOf(e *Execution) Cursor { return Cursor{UpdatedAt: e.UpdatedAt, ExecutionID: e.ID} }

// ParseCursor parses the result of String. The error has code INVALID_LIST_CURSOR.
func ParseCursor(s string) (Cursor, error) {
	at, id, found := strings.Cut(s, "|")
	if found && id != "" {
		if t, err := ParseTimestamp(at); err == nil && t.Year() >= 0 && t.Year() <= 9999 { // the range that String writes
			return Cursor{UpdatedAt: t, ExecutionID: id}, nil
		}
	}
	return Cursor{}, problem.New(problem.InvalidListCursor, "invalid cursor %q", s).
		WithHint("Pass the next cursor of the previous page unchanged, or none for the first page.")
}

// String returns "<updated_at>|<execution_id>" (spec: execution, 11.3).
func (c Cursor) String() string { return FormatTimestamp(c.UpdatedAt) + "|" + c.ExecutionID }

// Compare compares positions in the order of List.
func (c Cursor) Compare(d Cursor) int {
	return cmp.Or(d.UpdatedAt.Compare(c.UpdatedAt), cmp.Compare(c.ExecutionID, d.ExecutionID))
}

const (
	defaultListLimit = 50
	maxListLimit     = 100
)

// PageSize returns the page size of the query: 50 by default, at most 100 (spec: execution, 11.3). Another limit is a VALIDATION_ERROR,
// because a page shorter than requested would look like the last one.
func (q *ListQuery) PageSize() (int, error) {
	switch {
	case q.Limit < 0 || q.Limit > maxListLimit:
		return 0, problem.New(problem.ValidationError, "the limit of a list must be 1 to %d, not %d", maxListLimit, q.Limit).
			WithHint("Read further pages with the cursor.")
	case q.Limit == 0:
		return defaultListLimit, nil
	}
	return q.Limit, nil
}

// Selected returns the selected phases in the order of Phases.
func (q *ListQuery) Selected() []Phase {
	if q.Phase == "" && len(q.Phases) == 0 {
		return Phases()
	}
	return slices.DeleteFunc(Phases(), func(p Phase) bool { return p != q.Phase && !slices.Contains(q.Phases, p) })
}

// Matches reports whether a run matches the query's filters. It ignores the cursor.
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
