package elicit_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

// TestMessages: a person reads the question, which run asks, and what was wrong with their last answer; nothing of it acts on a terminal.
func TestMessages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ prompt, run, complaint, want string }{
		{"Refund 10 €?", "Workflow refunds, run r-1", "", "Refund 10 €?\n\nWorkflow refunds, run r-1"},
		{"How many?", "run r", "must be <= 3", "Your answer is invalid: must be <= 3\n\nHow many?\n\nrun r"},
		{"  ", "run r", "", "A workflow waits for your answer.\n\nrun r"},
		{"a\x1b[31mb\x00\u2028c\u202e\r\n\td", "run \x07r", "", "a[31mb c \n\td\n\nrun r"},
	} {
		if got := elicit.Message(c.prompt, c.run, c.complaint); got != c.want {
			t.Errorf("%q: got %q, want %q", c.prompt, got, c.want)
		}
	}
	long := elicit.Message(strings.Repeat("é", 1<<20), strings.Repeat("r", 1<<20), strings.Repeat("c", 1<<20))
	if len(long) > 10<<10 || !utf8.ValidString(long) || !strings.Contains(long, "longer than this form shows") {
		t.Errorf("%d bytes: %.100s", len(long), long)
	}
}
