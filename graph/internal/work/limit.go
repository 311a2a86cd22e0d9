package work

import (
	"math"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Limit bounds the attempts of a class: a node type ("step", "llm_call", "tool_call", "agent_delegate"), a step handler
// ("step:charge"), a model endpoint ("llm:https://api.example.com/v1"), an MCP server ("mcp:github"), an agent ("agent:reviewer"),
// or any class that an executor names. An attempt that belongs to several classes needs room in each.
type Limit struct {
	Class string
	// Concurrent bounds the attempts in flight, 0 for no bound.
	Concurrent int
	// PerSecond bounds the attempts that begin in a second, 0 for no bound. They are spread over the second.
	PerSecond float64
}

// CheckLimits returns the first fault in limits.
func CheckLimits(limits []Limit) error {
	seen := map[string]bool{}
	for _, l := range limits {
		switch {
		case strings.TrimSpace(l.Class) == "":
			return problem.New(problem.UsageError, "option Limits: a limit has no class")
		case seen[l.Class]:
			return problem.New(problem.UsageError, "option Limits: class %q has two limits", l.Class)
		case l.Concurrent < 0 || l.PerSecond < 0 || math.IsNaN(l.PerSecond) || math.IsInf(l.PerSecond, 0):
			return problem.New(problem.UsageError, "option Limits: the limit of class %q must be above zero", l.Class)
		case l.Concurrent == 0 && l.PerSecond == 0:
			return problem.New(problem.UsageError, "option Limits: class %q has no bound: set Concurrent, PerSecond or both", l.Class)
		}
		seen[l.Class] = true
	}
	return nil
}

// pool is the remaining room of a limit, or of the capacity.
type pool struct {
	Limit
	used int
	// tokens are the starts left at a time; see burst.
	tokens float64
	at     time.Time
	// filled counts the turns that left no room.
	filled uint64
	// shared is not nil in the pool of a limit that all processes of the store share.
	shared *sharing
}

// room reports whether an attempt may begin.
func (p *pool) room(now time.Time) bool {
	d, ok := p.after(now)
	return ok && d == 0
}

// take takes a place.
func (p *pool) take(now time.Time) {
	p.used++
	p.tokens--
	if p.shared != nil {
		p.takeShared()
	}
	if !p.room(now) {
		p.filled++
	}
}

// burst is the number of starts that can be saved up: a hundredth of a second's, so that a rate holds for every second.
func (p *pool) burst() float64 { return max(1, p.PerSecond/100) }

// refill adds the starts that have become free since the last call.
func (p *pool) refill(now time.Time) {
	if p.at.IsZero() {
		p.tokens = p.burst()
	} else if d := now.Sub(p.at).Seconds(); d > 0 {
		p.tokens = min(p.burst(), p.tokens+d*p.PerSecond)
	}
	p.at = now
}

// after returns the time until an attempt may begin; ok is false if another attempt must end first.
func (p *pool) after(now time.Time) (d time.Duration, ok bool) {
	if p.shared != nil {
		return p.sharedAfter(now)
	}
	if p.Concurrent > 0 && p.used >= p.Concurrent {
		return 0, false
	}
	if p.PerSecond <= 0 {
		return 0, true
	}
	p.refill(now)
	const rounding = 1e-6
	if p.tokens >= 1-rounding {
		return 0, true
	}
	seconds := min((1-p.tokens)/p.PerSecond, longestWait.Seconds())
	return time.Duration(math.Ceil(seconds * float64(time.Second))), true
}

// longestWait bounds the wait before the queue checks a rate again.
const longestWait = 24 * time.Hour

// spare reports whether another attempt can begin after the next one.
func (p *pool) spare() bool {
	if p.shared != nil {
		return (p.Concurrent == 0 || p.unused() > 1) && (p.PerSecond <= 0 || len(p.shared.starts) > 1)
	}
	return (p.Concurrent == 0 || p.used+1 < p.Concurrent) && (p.PerSecond <= 0 || p.tokens >= 2)
}
