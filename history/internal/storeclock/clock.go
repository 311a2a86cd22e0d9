// Package storeclock is the clock of a store. A step of the machine's clock neither ends a lease nor lengthens one, and the
// store's time does not follow it back.
package storeclock

import (
	"sync"
	"time"
)

const (
	// tolerance is how far the machine's clock may go back or ahead without counting as stepped.
	tolerance = time.Second
	// MaxStep is the longest step back that the store's time does not follow. A clock that was days ahead was wrong, and what
	// it said must not count for ever.
	MaxStep = 24 * time.Hour
)

// Uptime tells how long the machine has been up, its sleep included, and names its start. A step of the clock changes neither.
type Uptime func() (boot string, up time.Duration)

// Clock tells two times: Now, by which timers are due, and Leases, by which leases are judged.
//
// With an Uptime, Leases advances with it alone, and Now is the machine's time unless that was later before; then it goes on from
// there. Without, both are the machine's time, continued where that steps back.
type Clock struct {
	wall   func() time.Time
	uptime Uptime // nil if it is not known

	mu   sync.Mutex
	last time.Time // the last reading of wall
	// ahead is how far the store's time is ahead of wall; without an Uptime.
	ahead time.Duration
	// leases and floor are the times at which the machine started, by Leases and by Now; with an Uptime.
	leases, floor time.Time
}

// New returns a clock. Without a wall it is that of the machine.
func New(wall func() time.Time, uptime Uptime) *Clock {
	if wall == nil {
		wall = time.Now
	}
	c := &Clock{wall: wall, uptime: uptime, last: wall()}
	if uptime != nil {
		_, up := uptime()
		c.leases = c.last.Add(-up)
		c.floor = c.leases
	}
	return c
}

// Now returns the store's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time {
	now := c.wall()
	if c.uptime == nil {
		return now.Add(c.notice(now))
	}
	_, up := c.uptime()
	before := c.floor.Add(up)
	if back := before.Sub(now); back <= 0 || back > MaxStep {
		c.floor = now.Add(-up)
		return now
	}
	return before
}

// notice compares a reading of wall with the last one, and returns how far the store's time is ahead of it.
func (c *Clock) notice(now time.Time) time.Duration {
	passed := max(now.Sub(c.last), 0) // monotonic, if the readings are
	step := now.Round(0).Sub(c.last.Round(0)) - passed
	c.last = now
	switch {
	case step < -tolerance && c.ahead-step <= MaxStep:
		c.ahead -= step
	case step > tolerance:
		c.ahead = max(c.ahead-step, 0)
	}
	return c.ahead
}

// Leases returns the time by which leases are judged.
func (c *Clock) Leases() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uptime == nil {
		return c.now()
	}
	_, up := c.uptime()
	return c.leases.Add(up)
}

// State is what the processes that share a store have to know of each other's clocks. Times are in milliseconds since 1970.
type State struct {
	// Boot names the start of the machine, "" if it is not known.
	Boot string
	// Leases and Floor are the times of that start by Clock.Leases and Clock.Now; 0 if nobody has stored them, or Boot is "".
	Leases, Floor int64
	// Seen is the newest store's time that any process has stored, 0 if none has.
	Seen int64
}

// Boot returns the name of the machine's start, "" if it is not known.
func (c *Clock) Boot() string {
	if c.uptime == nil {
		return ""
	}
	boot, _ := c.uptime()
	return boot
}

// Agree makes the clock go with what other processes have stored.
func (c *Clock) Agree(s State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	behind := time.UnixMilli(s.Seen).Sub(c.now())
	seen := behind > tolerance && behind <= MaxStep
	if c.uptime == nil {
		if seen {
			c.ahead += behind
		}
		return
	}
	if floor := time.UnixMilli(s.Floor); s.Floor != 0 && floor.After(c.floor) && floor.Sub(c.floor) <= MaxStep {
		c.floor = floor
		seen = seen && time.UnixMilli(s.Seen).After(c.now())
	}
	switch {
	case s.Leases != 0:
		c.leases = time.UnixMilli(s.Leases)
	case seen: // the machine has started again since, with a clock that is behind
		c.leases = c.leases.Add(behind)
	}
	if seen {
		c.floor = c.floor.Add(time.UnixMilli(s.Seen).Sub(c.now()))
	}
}

// State returns what other processes have to know.
func (c *Clock) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := State{Seen: c.now().UnixMilli()}
	if c.uptime != nil {
		s.Boot, _ = c.uptime()
		s.Leases, s.Floor = c.leases.UnixMilli(), c.floor.UnixMilli()
	}
	return s
}
