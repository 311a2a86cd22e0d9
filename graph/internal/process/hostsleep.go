package process

import (
	"sync"
	"time"
)

// maxBeat is longer than a search takes from one round to the next, unless the host sleeps.
const maxBeat = 3 * searchInterval

// Presence is since when a process has been running without a break. When a host that slept wakes up, everything is overdue, and
// who is first to look may be anybody.
type Presence struct {
	mu    sync.Mutex
	begun time.Time
	last  time.Time // when the process was last seen running, zero before the first round of a search
}

// Begin notes when the process began.
func (p *Presence) Begin(now time.Time) { p.begun = now }

// beat notes a round of a search.
func (p *Presence) beat(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notice(now)
	p.last = now
}

// Since returns since when the process has been running.
func (p *Presence) Since(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notice(now)
	return p.begun
}

func (p *Presence) notice(now time.Time) {
	if p.last.IsZero() {
		return // without rounds it cannot be told
	}
	if now.Sub(p.last) > maxBeat {
		p.begun = now
	}
	p.last = now
}
