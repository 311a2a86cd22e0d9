package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{silent{3}, 3},
		{fmt.Errorf("x: %w", silent{1}), 1},
		{usage("no"), 2},
		{problem.New(problem.ExecutionNotFound, "no run"), 1},
		{problem.New(problem.Internal, "x").WithCause(context.Canceled), 130},
		{errors.New("disk full"), 1},
	} {
		if got := status(tt.err); got != tt.want {
			t.Errorf("%v: got %d, want %d", tt.err, got, tt.want)
		}
	}
}
