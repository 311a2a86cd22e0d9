package history_test

import (
	"errors"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// FuzzParseCursor: a cursor that is accepted is written and read again as the same position, any other is refused with its code.
func FuzzParseCursor(f *testing.F) {
	for _, s := range []string{
		"", "|", "2026-11-21T01:00:00.005Z|a", "2026-11-21T01:00:00.005Z|a|b", "2026-11-21T03:00:00+02:00|x", "0000-01-01T00:00:00Z|x",
		"9999-12-31T23:59:59.999Z|\xff", "9999-12-31T23:59:59-23:59|x", "oldest|2026-11-21T01:00:00.005Z|a",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := history.ParseCursor(text)
		if err != nil {
			if !errors.Is(err, problem.InvalidListCursor) {
				t.Fatalf("refused without its code: %v", err)
			}
			return
		}
		if c.ExecutionID == "" || c.Compare(c) != 0 {
			t.Fatalf("accepted %+v", c)
		}
		again, err := history.ParseCursor(c.String())
		if err != nil || again.ExecutionID != c.ExecutionID || again.UpdatedAt.UnixMilli() != c.UpdatedAt.UnixMilli() || again.String() != c.String() || again.Oldest != c.Oldest {
			t.Fatalf("%q was read as %+v and written as %q, which is read as %+v, %v", text, c, c.String(), again, err)
		}
	})
}
