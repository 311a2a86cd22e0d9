package history

import (
	"cmp"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Cursor is a position in the order of List: newest first, and by id, bytewise, if the times are equal.
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
		if t, err := ParseTimestamp(at); err == nil {
			return Cursor{UpdatedAt: t, ExecutionID: id}, nil
		}
	}
	return Cursor{}, problem.New(problem.InvalidListCursor, "invalid cursor %q", s).
		WithHint("Pass the next_cursor of the previous page unchanged, or none for the first page.")
}

// String is "<updated_at>|<execution_id>" (spec: execution, 11.3).
func (c Cursor) String() string { return FormatTimestamp(c.UpdatedAt) + "|" + c.ExecutionID }

// Compare compares positions in the order of List.
func (c Cursor) Compare(d Cursor) int {
	return cmp.Or(d.UpdatedAt.Compare(c.UpdatedAt), cmp.Compare(c.ExecutionID, d.ExecutionID))
}
