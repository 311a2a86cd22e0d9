package cli

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
)

// waitLimit is the flag that bounds how long a command waits for a run. Without it there is no bound; 0 is one.
type waitLimit struct {
	limit time.Duration
	given bool
}

var _ pflag.Value = (*waitLimit)(nil)

func (w *waitLimit) register(set *pflag.FlagSet) {
	set.Var(w, "wait", "give up waiting after this `time`, as in 30s, and leave the run to recover; 0 for not waiting at all (default: no limit)")
}

// Set takes a duration that is not negative.
func (w *waitLimit) Set(s string) error {
	limit, err := time.ParseDuration(s)
	if err != nil || limit < 0 {
		return errors.New("write a time with its unit, as in 500ms, 30s or 2m, or 0 for not waiting")
	}
	w.limit, w.given = limit, true
	return nil
}

func (w *waitLimit) String() string {
	if !w.given {
		return ""
	}
	return w.limit.String()
}

// Type names the kind of value for the help.
func (*waitLimit) Type() string { return "time" }
