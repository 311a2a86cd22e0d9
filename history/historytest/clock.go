package historytest

import (
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// SteppedClock is the clock of a machine: its uptime, and a time that may be set. Pass advances both.
type SteppedClock struct {
	passed clock
	set    clock
}

// NewSteppedClock returns a clock that shows Begin.
func NewSteppedClock() *SteppedClock { return &SteppedClock{clock{at: Begin}, clock{at: Begin}} }

// Now returns the time of the clock.
func (c *SteppedClock) Now() time.Time { return c.set.now() }

// Uptime returns how long the machine has been up.
func (c *SteppedClock) Uptime() (boot string, up time.Duration) {
	return "boot", c.passed.now().Sub(Begin) + time.Hour
}

// Pass advances the time and the uptime.
func (c *SteppedClock) Pass(d time.Duration) {
	c.passed.pass(d)
	c.set.pass(d)
}

// Step sets the clock forward, or back.
func (c *SteppedClock) Step(d time.Duration) { c.set.pass(d) }

// ClockSteps tests a store whose machine's clock is set. open returns the store as another process opens it.
func ClockSteps(t *testing.T, open func(t testing.TB, c *SteppedClock) history.Store) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			t.Parallel()
			c := NewSteppedClock()
			s := open(t, c)
			NewTrace(t, "x").Append(s, Start("w", "in_process")...)
			must(t, s.Renew(t.Context(), "p", 10*time.Second))
			wantClaim(t, s, "p", []string{"x"}, "x")
			before := got[time.Time](t)(s.Now(t.Context()))
			c.Pass(time.Second)
			for _, d := range []time.Duration{step, -step, step} {
				c.Step(d)
				for _, s := range []history.Store{s, open(t, c)} {
					now := got[time.Time](t)(s.Now(t.Context()))
					if now.Before(before) || now.Sub(before) > time.Hour+time.Minute {
						t.Errorf("the store's time is %v, and was %v", now, before)
					}
					before = now
					wantOwner(t, s, "x", "p", 9)
					wantDeparted(t, s)
					wantUnowned(t, s, 0)
					must(t, s.Renew(t.Context(), "q", 10*time.Second))
					wantClaim(t, s, "q", []string{"x"})
				}
			}
			c.Pass(10 * time.Second)
			for _, s := range []history.Store{s, open(t, c)} {
				wantDeparted(t, s, "p")
				wantUnowned(t, s, 0, "x")
				if now := got[time.Time](t)(s.Now(t.Context())); now.Sub(before) != 10*time.Second {
					t.Errorf("10 s take %v", now.Sub(before))
				}
			}
			must(t, s.Renew(t.Context(), "q", 10*time.Second))
			wantClaim(t, open(t, c), "q", []string{"x"}, "x")
		})
	}
}

// clockStepsBack: with an unknown uptime, a lease still ends after its time.
func clockStepsBack(t *testing.T, s history.Store, c *clock) {
	NewTrace(t, "x").Append(s, Start("w", "in_process")...)
	must(t, s.Renew(t.Context(), "p", 10*time.Second))
	wantClaim(t, s, "p", []string{"x"}, "x")
	before := got[time.Time](t)(s.Now(t.Context()))
	c.pass(-time.Hour)
	wantDeparted(t, s)
	if now := got[time.Time](t)(s.Now(t.Context())); now.Before(before) {
		t.Errorf("the store's time goes back from %v to %v", before, now)
	}
	must(t, s.Renew(t.Context(), "q", 20*time.Second))
	wantClaim(t, s, "q", []string{"x"})
	c.pass(10 * time.Second)
	wantDeparted(t, s, "p")
	wantClaim(t, s, "q", []string{"x"}, "x")
	// A step of days means that the clock was wrong: earlier stored times no longer count.
	c.pass(-48 * time.Hour)
	if now := got[time.Time](t)(s.Now(t.Context())); !now.Before(before) {
		t.Errorf("the store's time is %v", now)
	}
	must(t, s.Renew(t.Context(), "r", 10*time.Second))
	wantClaim(t, s, "r", []string{"x"}, "x")
}
