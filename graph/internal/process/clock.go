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
	notes     notes
	last      atomic.Pointer[reading]
	logged    atomic.Bool
}

// notes are readings of the store's clock that other calls have brought since the last measurement. The lock is measuring.
type notes struct {
	n    int
	best reading
	took time.Duration // by the call of best
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
	c.notes = notes{}
	for range clockSamples {
		asked := c.here()
		there, err := c.Env.Store.Now(c.Env.Context)
		if err != nil {
			c.Env.Log.Warn("store's clock not read", run.LogError, err)
			break
		}
		c.notes.add(asked, c.here(), there)
	}
	if c.notes.n > 0 {
		best := c.notes.best
		r = &best
	}
	c.adopt(r)
	now, _ := r.now(c.here())
	return now
}

// add adds a reading.
func (n *notes) add(asked, answered moment, there time.Time) {
	if took := answered.up - asked.up; n.n == 0 || took < n.took {
		n.took, n.best = took, reading{asked, there.Round(0).Sub(asked.wall.Add(took / 2))}
	}
	if n.best.difference.Abs() < clockPrecision {
		n.best.difference = 0
	}
	n.n++
}

// note takes a reading of the store's clock that another call has brought, asked for at a moment. A few of them replace a measurement.
func (c *Clock) note(asked moment, there time.Time) {
	if c.Override != nil || !c.measuring.TryLock() {
		return
	}
	defer c.measuring.Unlock()
	last, here := c.last.Load(), c.here()
	if last == nil || asked.up <= last.up {
		return
	}
	c.notes.add(asked, here, there)
	if c.notes.n < clockSamples || here.up-last.up < clockInterval/2 {
		return
	}
	r := c.notes.best
	c.adopt(&r)
}

// adopt makes a reading the last one.
func (c *Clock) adopt(r *reading) {
	c.notes = notes{}
	c.last.Store(r)
	if r.difference.Abs() > clockTolerance && c.logged.CompareAndSwap(false, true) {
		c.Env.Log.Warn("this process's clock differs from the store's, which is used", "difference", r.difference)
	}
}
