package jsonvalue_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"grün\tund\ngut 👩‍🚀":   "grün\tund\ngut 👩‍🚀",
		"\x1b[31mred\x1b[0m\a": `\u001b[31mred\u001b[0m\u0007`,
		"a\rb\x7f\u009bc":      `a\u000db\u007f\u009bc`,
		"ab\u202edc\u2066x":    `ab\u202edc\u2066x`,
		"line\u2028\u2029":     `line\u2028\u2029`,
		"raw \x9b byte":        "raw \ufffd byte",
	} {
		if got := jsonvalue.Plain(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
