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
