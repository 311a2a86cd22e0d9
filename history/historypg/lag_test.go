package historypg_test

import (
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestLag: a store that reads a replica tells how far behind it is, and an original that it is none.
func TestLag(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the servers take their time")
	}
	primary := pgtest.New(t)
	s := enginetest.Closing(t, enginetest.Must(historypg.Open(t.Context(), primary.URL(), historypg.Options{})))
	if l, err := s.Lag(t.Context()); err != nil || l.Replica || l.Behind != 0 {
		t.Errorf("the primary: %+v, %v", l, err)
	}
	standby := primary.Standby(t)
	x := historytest.NewTrace(t, "x")
	x.Append(s, "E ExecutionStarted")
	replica := enginetest.Closing(t, enginetest.Must(historypg.Open(t.Context(), standby.URL(), historypg.Options{ReadOnly: true})))
	until := func(what string, reached func(history.Lag) bool) {
		t.Helper()
		for begun := time.Now(); ; {
			l, err := replica.Lag(t.Context())
			if err == nil && reached(l) {
				return
			}
			if err != nil || !l.Replica || time.Since(begun) > time.Minute {
				t.Fatalf("%s: %+v, %v", what, l, err)
			}
		}
	}
	until("it has all", func(l history.Lag) bool {
		_, err := replica.Execution(t.Context(), "x")
		return err == nil && l.Known && l.Behind == 0
	})
	standby.Exec(t, "ALTER SYSTEM SET recovery_min_apply_delay = '1h'")
	standby.Exec(t, "SELECT pg_reload_conf()")
	until("it waits", func(l history.Lag) bool {
		x.Append(s, "C ScheduleNode a")
		return l.Known && l.Behind > 0
	})
	d, err := historypg.Diagnose(t.Context(), standby.URL(), historypg.Options{})
	if err != nil || !d.Standby || !d.Lag.Replica || d.Lag.Behind == 0 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestLagInWords(t *testing.T) {
	t.Parallel()
	for want, l := range map[string]history.Lag{
		"behind by an unknown time": {Replica: true}, "up to date": {Replica: true, Known: true},
		"less than 1s behind": {Replica: true, Known: true, Behind: time.Millisecond}, "at most 1m3s behind": {Replica: true, Known: true, Behind: 63*time.Second + 1},
	} {
		if got := l.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
