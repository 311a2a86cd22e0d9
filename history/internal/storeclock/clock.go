// Package storeclock is the clock of a store. A step of the machine's clock neither ends nor extends a lease, and the store's time does not
// step back with it.
package storeclock

import (
	"sync"
	"time"
)

const (
	// tolerance is the largest jump of the machine's clock that does not count as a step.
	tolerance = time.Second
	// MaxStep is the longest backward step that the store's time ignores. A clock that was days ahead was wrong, and its time must not count
	// for ever.
	MaxStep = 24 * time.Hour
)

// Uptime returns the time since boot, including sleep, and an id of the boot. A step of the clock changes neither.
type Uptime func() (boot string, up time.Duration)

// Clock keeps two times: Now, for timers, and Leases, for leases.
//
// With an Uptime, Leases advances with the uptime alone. Now is the machine's time, or continues from the latest earlier reading if the
// machine's time is behind it. Without an Uptime, both are the machine's time, and continue when it steps back.
type Clock struct {
	wall   func() time.Time
	uptime Uptime // nil if unknown

	mu   sync.Mutex
	last time.Time // the last reading of wall
	// ahead is the lead of the store's time over wall; without an Uptime.
	ahead time.Duration
	// leases and floor are the boot time, by Leases and by Now; with an Uptime.
	leases, floor time.Time
}

// New returns a clock. A nil wall means the machine's clock.
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

// notice compares a reading of wall with the last one, and returns the lead of the store's time over it.
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

// Leases returns the time used to judge leases.
func (c *Clock) Leases() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uptime == nil {
		return c.now()
	}
	_, up := c.uptime()
	return c.leases.Add(up)
}

// State is the clock state shared by the processes of a store. Times are in milliseconds since 1970.
type State struct {
	// Boot is the id of the machine's boot, or "" if unknown.
	Boot string
	// Leases and Floor are the boot time by Clock.Leases and Clock.Now; 0 if not stored, or if Boot is "".
	Leases, Floor int64
	// Seen is the newest store's time stored by any process, or 0.
	Seen int64
}

// Boot returns the id of the machine's boot, or "" if unknown.
func (c *Clock) Boot() string {
	if c.uptime == nil {
		return ""
	}
	boot, _ := c.uptime()
	return boot
}

// Agree adjusts the clock to the state stored by other processes.
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
	case seen: // the machine has rebooted since, with a clock that is behind
		c.leases = c.leases.Add(behind)
	}
	if seen {
		c.floor = c.floor.Add(time.UnixMilli(s.Seen).Sub(c.now()))
	}
}

// State returns the state to share with other processes.
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
