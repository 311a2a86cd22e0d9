package history

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Limiter is a Store that keeps limits which all of its processes share. Both stores of this module implement it.
//
// A limit bounds a class of attempts: those in flight by slots, those that begin in a second by start times. A process asks for both with
// Grant. It keeps its slots until it returns them, so that an attempt costs no commit, and uses each start time once. Slots count while the
// lease of their process lasts.
type Limiter interface {
	Store

	// SetLimits sets the limits of some classes, in one transaction. A limit without bounds removes that of its class. Slots stay with their
	// processes, also beyond a bound that is lowered. It returns USAGE_ERROR for a limit that SharedLimit.Check refuses or a repeated class.
	SetLimits(ctx context.Context, limits ...SharedLimit) error

	// SharedLimits returns the limits in the order of their classes, with what live processes hold of them and wait for.
	SharedLimits(ctx context.Context) ([]LimitUse, error)

	// Grant gives a live process slots and start times of some classes, as LimitUse.Grant decides, in one transaction, and takes back what
	// it returns. A process without a lease gets nothing. The result has one element for each want, in their order; for a class without a limit
	// its Limit has no bounds. Grants of a class follow one another: each sees the slots that the one before has given.
	Grant(ctx context.Context, process string, wants ...Want) ([]Granted, error)
}

// SharedLimit bounds the attempts of a class in all processes of a store together; graph.Limit lists the classes.
type SharedLimit struct {
	Class string
	// Concurrent is the largest number of attempts in flight, 0 for no bound.
	Concurrent int
	// PerSecond is the largest number of attempts that begin in a second, 0 for no bound. Their times are spread evenly.
	PerSecond float64
}

// The bounds of a SharedLimit.
const (
	// MaxClass is the largest length of a class, in bytes.
	MaxClass = 512
	// MinPerSecond and MaxPerSecond are the lowest and the highest rate; the lowest is about one start in a day.
	MinPerSecond = 1e-5
	MaxPerSecond = 1e6
	// MaxConcurrent is the largest number of slots.
	MaxConcurrent = 1e6
)

// Check returns USAGE_ERROR for a limit that cannot be kept.
func (l SharedLimit) Check() error {
	switch {
	case strings.TrimSpace(l.Class) == "" || len(l.Class) > MaxClass || !utf8.ValidString(l.Class) || strings.ContainsFunc(l.Class, unicode.IsControl):
		return problem.New(problem.UsageError, "the class %q cannot have a shared limit", l.Class).
			WithHint("A class is the name of a node type, or that and the name of a handler, model, server or agent: llm_call, step:charge.")
	case l.Concurrent < 0 || l.Concurrent > MaxConcurrent:
		return problem.New(problem.UsageError, "the shared limit of class %q cannot be %d at once", l.Class, l.Concurrent).
			WithHint("Use a whole number from 1 to 1000000.")
	case l.PerSecond != 0 && !(l.PerSecond >= MinPerSecond && l.PerSecond <= MaxPerSecond):
		return problem.New(problem.UsageError, "the shared limit of class %q cannot be %v a second", l.Class, l.PerSecond).
			WithHint("Use a number from 0.00001 to 1000000.")
	}
	return nil
}

// CheckLimits returns the first fault in limits that are set together.
func CheckLimits(limits []SharedLimit) error {
	seen := map[string]bool{}
	for _, l := range limits {
		if err := l.Check(); err != nil {
			return err
		}
		if seen[l.Class] {
			return problem.New(problem.UsageError, "class %q has two shared limits", l.Class).WithHint("Name each class once.")
		}
		seen[l.Class] = true
	}
	return nil
}

// Bounds reports whether the limit bounds anything.
func (l SharedLimit) Bounds() bool { return l.Concurrent > 0 || l.PerSecond > 0 }

// Step returns the time between two starts, 0 without a rate. It is rounded up to the nanosecond, so that no second has a start too many.
func (l SharedLimit) Step() time.Duration {
	if l.PerSecond <= 0 {
		return 0
	}
	return time.Duration(max(1, math.Ceil(float64(time.Second)/l.PerSecond)))
}

// StartsAhead is how far ahead start times are reserved.
const StartsAhead = 50 * time.Millisecond

// Share is what a process holds of a limit.
type Share struct {
	Process string
	// Slots is the number of slots that it holds.
	Slots int
	// Wanted is the number of slots that it wanted to hold at its last Grant, Starts the number of start times that it wanted and did not get.
	Wanted, Starts int
	// Since is the time of the first of its last Grants that gave it fewer slots than it wanted and than its fair share; zero if the last one
	// did not.
	Since time.Time
}

// Short returns the number of slots that the process wants and does not have.
func (s *Share) Short() int { return max(0, s.Wanted-s.Slots) }

// Waiting returns the number of attempts that lack a slot or a start time in the process.
func (s *Share) Waiting() int { return max(s.Short(), s.Starts) }

// LimitUse is a limit with its use.
type LimitUse struct {
	SharedLimit
	// Next is the first time that is not reserved for a start, by the store's clock; it may have passed.
	Next time.Time
	// Shares are those of live processes, in the order of their names; without processes that hold and want nothing.
	Shares []Share
}

// Slots returns the number of slots that live processes hold.
func (u *LimitUse) Slots() (n int) {
	for i := range u.Shares {
		n += u.Shares[i].Slots
	}
	return n
}

// Waiting returns the number of attempts that lack a slot or a start time in live processes.
func (u *LimitUse) Waiting() (n int) {
	for i := range u.Shares {
		n += u.Shares[i].Waiting()
	}
	return n
}

// Keep returns the number of slots that a process should keep as its attempts end: all unless another process is short of slots, else its fair
// share. If fewer slots than processes exist, that is none while another process has none, so that they take turns.
func (u *LimitUse) Keep(process string) int {
	s, _ := u.ShareOf(process)
	short, lacking := u.others(process)
	switch level := u.level(); {
	case !short:
		return s.Slots
	case lacking:
		return min(s.Slots, level)
	default:
		return min(s.Slots, level+1)
	}
}

// others reports whether another process is short of slots, and whether one lacks some of its fair share.
func (u *LimitUse) others(process string) (short, lacking bool) {
	if u.Concurrent == 0 {
		return false, false
	}
	level := u.level()
	for i := range u.Shares {
		if s := &u.Shares[i]; s.Process != process {
			short = short || s.Short() > 0
			lacking = lacking || s.lacks(level) > 0
		}
	}
	return short, lacking
}

// level returns the fair share: the largest number of slots that every process can have, if those that want fewer have only these.
// It is 0 with fewer slots than processes.
func (u *LimitUse) level() int {
	var wanted []int
	for i := range u.Shares {
		if n := u.Shares[i].Wanted; n > 0 {
			wanted = append(wanted, n)
		}
	}
	slices.Sort(wanted)
	left := u.Concurrent
	for i, n := range wanted {
		level := left / (len(wanted) - i)
		if n > level {
			return level
		}
		left -= n
	}
	return u.Concurrent
}

// lacks returns the number of slots that the process wants and that would be its fair share, at least 1.
func (s *Share) lacks(level int) int { return max(0, min(s.Wanted, max(1, level))-s.Slots) }

// Want is what a process wants of a limit.
type Want struct {
	Class string
	// Slots is the number of slots to hold from now on, those held already included. Used is the number of those that attempts use: the
	// process holds these in any case.
	Slots, Used int
	// Starting is the number of further slots whose attempts only wait for a start time: of these, the process keeps what it holds of its fair
	// share, but at least one. Else it would return the slot and ask for a start for it.
	Starting int
	// Starts is the number of further start times to reserve.
	Starts int
	// Unused start times from First on are returned. They become free again if they are the last that were reserved.
	Unused int
	First  time.Time
}

// CheckWants returns INTERNAL_ERROR for wants that no process has.
func CheckWants(process string, wants []Want) error {
	seen := map[string]bool{}
	for i := range wants {
		w := &wants[i]
		if w.Class == "" || seen[w.Class] || w.Used < 0 || w.Used > w.Slots || w.Slots > math.MaxInt32 || w.Starting < 0 || w.Starts < 0 || w.Unused < 0 {
			return problem.New(problem.Internal, "the process %q cannot want %+v of a shared limit", process, *w)
		}
		seen[w.Class] = true
	}
	if process == "" {
		return problem.New(problem.Internal, "a process without a name cannot hold slots of a shared limit")
	}
	return nil
}

// Granted is the answer to a Want.
type Granted struct {
	// Limit is the limit as it is now, without bounds if its class is not limited.
	Limit SharedLimit
	// Slots is the number of slots that the process holds now; without a bound, all that it wanted.
	Slots int
	// Others is the number of slots that other live processes hold.
	Others int
	// Starts is the number of reserved start times; without a rate, all that were wanted. The first is First, and each other one Limit.Step
	// after the one before.
	Starts int
	First  time.Time
	// Next is the first time that is not reserved, and Now the time of the grant, both by the store's clock. Before Next minus StartsAhead
	// there are no further start times.
	Next, Now time.Time
}

// Grant decides a want of a live process and changes the use accordingly: Next, and the share of the process. Stores call it in their
// transaction, with the class locked, and store the changes. now is the store's time.
//
// A process gets the slots that are free, up to its fair share before those that have lacked theirs for a shorter time, and beyond it after all
// others. Of its own slots beyond Keep it gives back those that no attempt uses.
func (u *LimitUse) Grant(process string, w *Want, now time.Time) Granted {
	g := Granted{Limit: u.SharedLimit, Slots: w.Slots, Starts: w.Starts, First: now, Next: now, Now: now}
	share := u.share(process)
	before := *share
	share.Wanted, share.Starts, share.Slots = w.Slots, 0, w.Slots
	share.Since = time.Time{}
	if u.Concurrent > 0 {
		if before.Since.IsZero() {
			before.Since = now
		}
		g.Others, g.Slots = u.Slots()-share.Slots, u.slots(&before, w)
		share.Slots = g.Slots
		if share.lacks(u.level()) > 0 {
			share.Since = before.Since
		}
	} else {
		share.Wanted, share.Slots = 0, 0
	}
	if step := u.Step(); step > 0 {
		g.First, g.Starts = u.starts(w, step, now)
		g.Next, share.Starts = u.Next, w.Starts-g.Starts
	}
	u.Shares = slices.DeleteFunc(u.Shares, func(s Share) bool { return s.Slots == 0 && s.Wanted == 0 && s.Starts == 0 })
	return g
}

// ShareOf returns the share of a process; ok is false if it holds and wants nothing.
func (u *LimitUse) ShareOf(process string) (s Share, ok bool) {
	for i := range u.Shares {
		if u.Shares[i].Process == process {
			return u.Shares[i], true
		}
	}
	return Share{}, false
}

// share returns the share of a process, created if missing. It is valid until the next call.
func (u *LimitUse) share(process string) *Share {
	i, found := slices.BinarySearchFunc(u.Shares, process, func(s Share, name string) int { return strings.Compare(s.Process, name) })
	if !found {
		u.Shares = slices.Insert(u.Shares, i, Share{Process: process})
	}
	return &u.Shares[i]
}

// slots returns the number of slots for a process. before is its share until now, with the time since which it has waited.
func (u *LimitUse) slots(before *Share, w *Want) int {
	level := u.level()
	free := u.Concurrent         // for this process
	lacked, lackedLonger := 0, 0 // of these, by others
	for i := range u.Shares {
		s := &u.Shares[i]
		if s.Process == before.Process {
			continue
		}
		free -= s.Slots
		lacked += s.lacks(level)
		if s.Since.Before(before.Since) {
			lackedLonger += s.lacks(level)
		}
	}
	most, kept := u.Concurrent, before.Slots
	switch short, lacking := u.others(before.Process); {
	case lacking:
		most, kept = level+1, min(kept, level)
	case short:
		most, kept = level+1, min(kept, level+1)
	}
	kept = max(kept, min(before.Slots, w.Used+w.Starting, max(1, level)))
	slots := max(min(free-lacked, most), min(free-lackedLonger, max(1, level)), min(free, kept), 0)
	return max(min(slots, w.Slots), w.Used)
}

// starts reserves start times.
func (u *LimitUse) starts(w *Want, step time.Duration, now time.Time) (first time.Time, n int) {
	if w.Unused > 0 && u.Next.Equal(w.First.Add(time.Duration(w.Unused)*step)) {
		u.Next = w.First
	}
	horizon := now.Add(StartsAhead)
	if latest := horizon.Add(step); u.Next.After(latest) { // the clock was set back, or the rate was lower
		u.Next = latest
	}
	first = u.Next
	if first.Before(now) {
		first = now
	}
	if w.Starts == 0 || first.After(horizon) {
		return first, 0
	}
	n = min(w.Starts, int(horizon.Sub(first)/step)+1)
	u.Next = first.Add(time.Duration(n) * step)
	return first, n
}
