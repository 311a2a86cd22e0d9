package calls_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/calls"
)

func TestCommandWordsAreComplete(t *testing.T) {
	t.Parallel()
	if got, want := slices.Sorted(maps.Keys(calls.CommandWords("r"))), slices.Sorted(slices.Values(problem.Names())); !slices.Equal(got, want) {
		t.Errorf("translated are %q\nthe library uses %q", got, want)
	}
}
