package cli

import (
	"maps"
	"slices"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func TestCommandWordsAreComplete(t *testing.T) {
	t.Parallel()
	if got, want := slices.Sorted(maps.Keys(commandWords("r"))), slices.Sorted(slices.Values(problem.Names())); !slices.Equal(got, want) {
		t.Errorf("translated are %q\nthe library uses %q", got, want)
	}
}
