package history

import (
	"cmp"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Cursor is a position in the order of List: newest first, ids bytewise ascending where the times are equal.
type Cursor struct {
	UpdatedAt   time.Time
	ExecutionID string
}

// CursorOf gives the position of a run.
func CursorOf(e *Execution) Cursor { return Cursor{UpdatedAt: e.UpdatedAt, ExecutionID: e.ID} }

// ParseCursor reads what String wrote. The error has code INVALID_LIST_CURSOR.
func ParseCursor(s string) (Cursor, error) {
	at, id, found := strings.Cut(s, "|")
	if found && id != "" {
		if t, err := ParseTimestamp(at); err == nil {
			return Cursor{UpdatedAt: t, ExecutionID: id}, nil
		}
	}
	return Cursor{}, problem.New(problem.InvalidListCursor, "%q is no cursor", s).
		WithHint("Pass next_cursor of the page before as it is, or none for the first page.")
}

// String is "<updated_at>|<execution_id>" (spec: execution, 11.3).
func (c Cursor) String() string { return FormatTimestamp(c.UpdatedAt) + "|" + c.ExecutionID }

// Compare orders positions as List does.
func (c Cursor) Compare(d Cursor) int {
	return cmp.Or(d.UpdatedAt.Compare(c.UpdatedAt), cmp.Compare(c.ExecutionID, d.ExecutionID))
}
