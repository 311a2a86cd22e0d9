package process_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestTheEnginesClockFollowsTheStores: a step of this process's clock is noticed by the next reading, and the host's sleep counts.
func TestTheEnginesClockFollowsTheStores(t *testing.T) {
	t.Parallel()
	c := historytest.NewSteppedClock()
	var slept time.Duration
	clock := process.Clock{
		Env: work.Env{
			Store: historymem.NewWith(historymem.Options{Now: c.Now, Uptime: c.Uptime}), Log: slog.New(slog.DiscardHandler),
			Go: func(f func()) { f() }, Context: t.Context(),
		},
		Host: func() (time.Time, time.Duration) {
			_, up := c.Uptime()
			return c.Now(), up - slept
		},
	}
	want := historytest.Begin
	for _, d := range []struct{ pass, step, sleep time.Duration }{
		{}, {pass: time.Second}, {pass: time.Minute}, {step: -time.Hour}, {pass: time.Minute}, {step: time.Hour}, {step: -time.Hour},
		{pass: time.Second}, {sleep: 8 * time.Hour}, {pass: time.Minute},
	} {
		c.Pass(d.pass + d.sleep)
		c.Step(d.step)
		slept += d.sleep
		want = want.Add(d.pass + d.sleep)
		if now := clock.Now(); !now.Equal(want) {
			t.Errorf("after %+v: %v, want %v", d, now, want)
		}
	}
}
