package jsonvalue_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func TestFirstUnits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{{"", 1, ""}, {"abc", 3, "abc"}, {"abc", 2, "ab"}, {"a😀b", 2, "a"}, {"a😀b", 3, "a😀"}, {"äöü", 2, "äö"}} {
		if got := jsonvalue.FirstUnits(tt.text, tt.n); got != tt.want {
			t.Errorf("%d units of %q: %q, want %q", tt.n, tt.text, got, tt.want)
		}
	}
}

func TestInvalidUTF8(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": -1, "aä😀\ufffd": -1, "\xff": 0, "aä\xf0\x9f": 3, "\ufffd\xc0\xaf": 3} {
		if got := jsonvalue.InvalidUTF8([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
