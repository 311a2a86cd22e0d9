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
		{"--at=abc", `--at: "abc" is not a whole number`},
		{"--at=", `--at: "" is not a whole number`},
		{"--at=99999999999999999999", `--at: "99999999999999999999" is not a number that is small enough`},
		{"-n=1.5", `--limit: "1.5" is not a whole number`},
		{"--json=yes", `--json: "yes" is not true or false`},
		{"--newer=5", `--newer: "5" is not a time with its unit, as in 500ms, 30s or 24h`},
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
