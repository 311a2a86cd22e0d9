package suggest_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"definition", "execution_id", "input", "wait_ms", "", "a"}
	for wrong, want := range map[string]string{
		"defintion":             "definition", // a letter lost
		"definitoin":            "definition", // neighbours swapped
		"Definition":            "definition", // letter case
		"execution-id":          "execution_id",
		"imput":                 "input",
		"b":                     "a",
		"output":                "",
		"":                      "",
		"verbose":               "",
		strings.Repeat("x", 65): "",
	} {
		if got := suggest.Nearest(wrong, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", wrong, got, want)
		}
	}
	if got := suggest.Nearest("ab", []string{"ac", "ad"}); got != "ac" {
		t.Errorf("of two as near it gives %q", got)
	}
	if got := suggest.Nearest("awaiting_timer", []string{"awaiting_signal"}); got != "" {
		t.Errorf("a word that two names begin with makes them alike: %q", got)
	}
	if got := suggest.Nearest("awaiting_singal", []string{"awaiting_activity", "awaiting_signal"}); got != "awaiting_signal" {
		t.Errorf("a typing error in a second word gives %q", got)
	}
	if got := suggest.Nearest("imput", append(make([]string, 2000), "input")); got != "" {
		t.Errorf("among too many names it gives %q", got)
	}
}
