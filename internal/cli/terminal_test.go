package cli

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/config"
)

func TestPalette(t *testing.T) {
	t.Parallel()
	tests := []struct {
		terminal  bool
		variables []string
		want      string
	}{
		{true, nil, "\ufdd032\ufdd1ok\ufdd00\ufdd1"},
		{false, nil, "ok"},
		{true, []string{"NO_COLOR=1"}, "ok"},
		{true, []string{"NO_COLOR="}, "\ufdd032\ufdd1ok\ufdd00\ufdd1"},
		{true, []string{"TERM=dumb"}, "ok"},
	}
	for _, tt := range tests {
		if got := newPalette(tt.terminal, config.Environment{Variables: tt.variables}).good("ok"); got != tt.want {
			t.Errorf("%v %q: got %q, want %q", tt.terminal, tt.variables, got, tt.want)
		}
	}
}
