package config_test

import (
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/internal/config"
)

// TestFlagError: whoever writes a value that does not parse reads what is wanted, and nothing of the parser.
func TestFlagError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ arg, want string }{
		{"--at=abc", `invalid value "abc" for --at: expected a whole number`},
		{"--at=", `invalid value "" for --at: expected a whole number`},
		{"--at=99999999999999999999", `invalid value "99999999999999999999" for --at: expected a smaller number`},
		{"-n=1.5", `invalid value "1.5" for --limit: expected a whole number`},
		{"--json=yes", `invalid value "yes" for --json: expected true or false`},
		{"--newer=5", `invalid value "5" for --newer: expected a time with its unit, as in 500ms, 30s or 24h`},
		{"--nothing", `unknown flag: --nothing`},
	} {
		set := pflag.NewFlagSet("x", pflag.ContinueOnError)
		set.Int64("at", 0, "")
		set.IntP("limit", "n", 0, "")
		set.Bool("json", false, "")
		set.Duration("newer", time.Hour, "")
		err := set.Parse([]string{tt.arg})
		if err == nil {
			t.Errorf("%s is taken", tt.arg)
			continue
		}
		if got := config.FlagError(err).Error(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.arg, got, tt.want)
		}
	}
}
