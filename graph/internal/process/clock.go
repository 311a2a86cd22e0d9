package process

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/internal/guard"
)

// Clock is the store's clock as this process reads it: its own monotonic clock plus a difference that is measured from time to time, and
// after a step of this process's clock. So processes agree on due times, and timers do not wait for a wrong clock.
type Clock struct {
	Env work.Env // without Now
	// Override, if not nil, is used instead.
	Override func() time.Time
	// Host, if not nil, replaces the system's time and this process's uptime.
	Host func() (wall time.Time, up time.Duration)

	measuring sync.Mutex
	last      atomic.Pointer[reading]
	logged    atomic.Bool
}

// moment is one reading of this process's clocks.
type moment struct {
	wall time.Time
	// up is the process's uptime, without the sleep of the host.
	up time.Duration
}

// begun is the start of this process.
var begun = time.Now()

func (c *Clock) here() moment {
	if c.Host != nil {
		wall, up := c.Host()
		return moment{wall, up}
	}
	now := time.Now()
	return moment{now.Round(0), now.Sub(begun)}
}

// reading is a moment with the lead of the store's clock.
type reading struct {
	moment
	difference time.Duration
}

// now returns the current time, based on the reading, and whether this process's clock has stepped since, or the host has slept.
func (r *reading) now(here moment) (now time.Time, stepped bool) {
	passed := here.up - r.up
	step := here.wall.Sub(r.wall) - passed
	return r.wall.Add(r.difference + passed), step.Abs() > clockTolerance
}

// The parameters of a measurement.
const (
	clockInterval = 30 * time.Second
	clockSamples  = 5
	// clockPrecision: a smaller difference counts as zero.
	clockPrecision = 5 * time.Millisecond
	// clockTolerance: a larger difference is logged.
	clockTolerance = 250 * time.Millisecond
)

// Now returns the time.
func (c *Clock) Now() time.Time {
	if c.Override != nil {
		var now time.Time
		if guard.Call(c.Env.Log, "the clock of the embedder", func() { now = c.Override() }) != nil {
			now = time.Now()
		}
		return now
	}
	here := c.here()
	last := c.last.Load()
	if last == nil {
		return c.measure(here)
	}
	now, stepped := last.now(here)
	switch {
	case c.Env.Context.Err() != nil:
	case stepped:
		return c.measure(here)
	case here.up-last.up > clockInterval && c.last.CompareAndSwap(last, &reading{here, now.Sub(here.wall)}):
		c.Env.Go(func() { c.measure(here) })
	}
	return now
}

// measure measures the difference of the clocks and returns the time. It takes the fastest of several calls, and the middle of that call
// as the time of the store's reading.
func (c *Clock) measure(here moment) time.Time {
	c.measuring.Lock()
	defer c.measuring.Unlock()
	r := &reading{moment: here}
	if last := c.last.Load(); last != nil {
		here = c.here()
		now, stepped := last.now(here)
		if last.up > r.up && !stepped {
			return now // another goroutine has measured it
		}
		r = &reading{here, now.Sub(here.wall)} // unless the store can be read
	}
	best := time.Duration(-1)
	for range clockSamples {
		asked := c.here()
		there, err := c.Env.Store.Now(c.Env.Context)
		if err != nil {
			c.Env.Log.Warn("store's clock not read", run.LogError, err)
			break
		}
		if took := c.here().up - asked.up; best < 0 || took < best {
			best, r = took, &reading{asked, there.Round(0).Sub(asked.wall.Add(took / 2))}
		}
	}
	if best >= 0 && r.difference.Abs() < clockPrecision {
		r.difference = 0
	}
	c.last.Store(r)
	if r.difference.Abs() > clockTolerance && c.logged.CompareAndSwap(false, true) {
		c.Env.Log.Warn("this process's clock differs from the store's, which is used", "difference", r.difference)
	}
	now, _ := r.now(c.here())
	return now
}
