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
		{true, nil, "\x1b[32mok\x1b[0m"},
		{false, nil, "ok"},
		{true, []string{"NO_COLOR=1"}, "ok"},
		{true, []string{"NO_COLOR="}, "\x1b[32mok\x1b[0m"},
		{true, []string{"TERM=dumb"}, "ok"},
	}
	for _, tt := range tests {
		if got := newPalette(tt.terminal, config.Environment{Variables: tt.variables}).good("ok"); got != tt.want {
			t.Errorf("%v %q: got %q, want %q", tt.terminal, tt.variables, got, tt.want)
		}
	}
}
