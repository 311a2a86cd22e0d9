package mcpserver

import (
	"maps"
	"slices"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func TestWordsAreComplete(t *testing.T) {
	t.Parallel()
	if got, want := slices.Sorted(maps.Keys(words)), slices.Sorted(slices.Values(problem.Names())); !slices.Equal(got, want) {
		t.Errorf("translated are %q\nthe library uses %q", got, want)
	}
}
