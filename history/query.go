package history

import "github.com/workflows-engine/workflows-engine/graph/problem"

const (
	defaultListLimit = 50
	maxListLimit     = 100
)

// PageSize is the number of runs that a page of the query holds: 50 by default, at most 100 (spec: execution, 11.3).
// A negative limit is refused with VALIDATION_ERROR.
func (q *ListQuery) PageSize() (int, error) {
	switch {
	case q.Limit < 0:
		return 0, problem.New(problem.ValidationError, "the limit of a list must be 1 to %d, not %d", maxListLimit, q.Limit)
	case q.Limit == 0:
		return defaultListLimit, nil
	}
	return min(q.Limit, maxListLimit), nil
}

// Matches reports whether a run matches the query's filters. The cursor is not one of them.
func (q *ListQuery) Matches(e *Execution) bool {
	return (q.Phase == "" || e.Phase == q.Phase) &&
		(q.DefinitionName == "" || e.DefinitionName == q.DefinitionName) &&
		(q.UpdatedAfter.IsZero() || !e.UpdatedAt.Before(q.UpdatedAfter)) &&
		(q.UpdatedBefore.IsZero() || !e.UpdatedAt.After(q.UpdatedBefore))
}
