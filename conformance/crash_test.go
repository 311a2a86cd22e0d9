package conformance_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// The crash enumeration. Each workflow runs once undisturbed. Then, for every operation of that run on its store, it runs
// again with that operation failing, in each of the ways below. Afterwards the run is driven to its end; where the process
// died, by a new runner over the same store. Both runs must end alike.
//
// The short form tries a sample of the points, a larger one of the examples, and under the race detector a smaller one; it leaves out
// lookups that repeat themselves. `make soak` tries every point of all workflows, polls long
// waits instead of sleeping through them, and lets the process that takes over die too, at each of its first operations.

// way is how an operation on the store fails.
type way struct {
	name string
	// late means that the operation takes effect first, dead that the process dies with it.
	late, dead bool
}

var ways = []way{
	{"died before the commit", false, true},
	{"died after the commit", true, true},
	{"error, not committed", false, false},
	{"error, although committed", true, false},
}

// crashMode is how a workflow runs.
type crashMode struct {
	mode machine.Mode
	// cancel means that the run is cancelled when it first waits for a host or a person.
	cancel bool
}

var crashModes = []crashMode{
	{machine.InProcess, false}, {machine.HostMediated, false}, {machine.InProcess, true}, {machine.HostMediated, true},
}

// modes are those of the given ones in which a case runs: hosts have no agents of the engine.
func (c *crashCase) modes(all []crashMode) []crashMode {
	if c.team == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(m crashMode) bool { return m.mode != machine.InProcess })
}

// vectorStride is the distance between the points of a vector's workflow that the short form tries. It shares no divisor
// with the number of ways to fail, so that every way is tried.
const (
	vectorStride  = 29
	exampleStride = 13 // that between the points of an example
)

// TestCrashAtEveryOperation is the enumeration in memory: a sample of the points of each workflow, a larger one of the examples. `make soak`
// tries them all.
func TestCrashAtEveryOperation(t *testing.T) {
	t.Parallel()
	cases := crashCases(t)
	var points tally
	var possible atomic.Int64
	t.Run("memory", func(t *testing.T) {
		for _, c := range cases {
			for _, m := range c.modes(crashModes) {
				points.offered++
				t.Run(fmt.Sprintf("%s/%s/cancel=%v", c.name, m.mode, m.cancel), func(t *testing.T) {
					points.taken.Add(1)
					t.Parallel()
					c := c.staffed(t)
					inBubble(t, func(t *testing.T) {
						newStore := func() history.Store { return historymem.New() }
						stride := func(points int) float64 {
							switch {
							case soak.On():
								return 1
							case soak.UnderRace:
								return spread(points, 1)
							case c.example:
								return exampleStride
							}
							return vectorStride
						}
						tried, all := enumerate(t, c, m, newStore, stride)
						points.n.Add(int64(tried))
						possible.Add(int64(all))
					})
				})
			}
		}
	})
	t.Logf("%d workflows, %d of %d crash points tried", len(cases), points.n.Load(), possible.Load())
	if points.short(int64(soak.Size(500, 150, 500))) {
		t.Errorf("only %d points", points.n.Load())
	}
}

// tally counts what the subtests of a test tried.
type tally struct {
	offered int          // subtests
	taken   atomic.Int64 // subtests that -run selected
	n       atomic.Int64 // cases tried
}

// short reports whether fewer cases were tried than the test is meant to try. It does not apply if -run selected a part.
func (c *tally) short(least int64) bool {
	return int(c.taken.Load()) == c.offered && c.n.Load() < least
}

func TestTally(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		offered  int
		taken, n int64
		short    bool
	}{{0, 0, 0, true}, {9, 9, 499, true}, {9, 9, 500, false}, {9, 1, 372, false}} {
		c := tally{offered: tt.offered}
		c.taken.Store(tt.taken)
		c.n.Store(tt.n)
		if got := c.short(500); got != tt.short {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// TestCrashOnSQLite tries a sample of the points over real files, and a larger one in `make soak`.
func TestCrashOnSQLite(t *testing.T) {
	t.Parallel()
	limit := soak.Size(2, 1, 100)
	var points tally
	t.Run("files", func(t *testing.T) {
		for _, c := range crashCases(t) {
			if !slices.Contains(repaired, c.name) && c.name != "parallel.nested_state/repairs" && c.team == nil {
				continue
			}
			for _, m := range c.modes(crashModes[:2]) {
				points.offered++
				t.Run(fmt.Sprintf("%s/%s", c.name, m.mode), func(t *testing.T) {
					points.taken.Add(1)
					t.Parallel()
					c := c.staffed(t)
					dir, files := t.TempDir(), 0
					inBubble(t, func(t *testing.T) {
						newStore := func() history.Store {
							files++
							s, err := historysql.Open(t.Context(), filepath.Join(dir, fmt.Sprintf("%d.db", files)), historysql.Options{Synchronous: historysql.Normal})
							if err != nil {
								t.Fatal(err)
							}
							return s
						}
						tried, _ := enumerate(t, c, m, newStore, func(points int) float64 { return spread(points, limit) })
						points.n.Add(int64(tried))
					})
				})
			}
		}
	})
	t.Logf("%d crash points tried", points.n.Load())
	if points.short(20) {
		t.Errorf("only %d points", points.n.Load())
	}
}

// spread returns the distance between points such that at most limit of them are tried.
func spread(points, limit int) float64 { return max(1, float64(points)/float64(limit)) }

// enumerate tries points of one workflow in one mode. It returns how many it tried and how many there are. stride returns
// the distance between two points that are tried; the first of them depends on the workflow.
func enumerate(t *testing.T, c *crashCase, m crashMode, newStore func() history.Store, stride func(points int) float64) (tried, all int) {
	want := newTrial(t, c, m, newStore())
	defer want.closeStore()
	want.undisturbed()
	switch {
	case want.run == nil:
		return 0, 0 // a run that never waits cannot be cancelled
	case want.run.ErrorCode == string(problem.WorkflowNotFound), want.run.ErrorCode == string(problem.VersionPinMismatch):
		return 0, 0 // a process that claims such a run does not fail it: another process may know the workflow
	}
	type point struct {
		at int
		w  way
		// again is the operation at which the process that takes over dies, 0 for none.
		again int
	}
	var points []point
	for at, call := range want.calls {
		if !soak.On() && repeated(want.calls, at) {
			continue
		}
		for _, w := range ways {
			if w.late && reading(call) {
				continue // it makes no difference whether a lookup fails before or after it is made
			}
			points = append(points, point{at + 1, w, 0})
			if w.dead && soak.On() {
				for again := range 12 {
					points = append(points, point{at + 1, w, again + 1})
				}
			}
		}
	}
	step := stride(len(points))
	first := len(c.name) % max(1, min(int(step), len(points)))
	for i := float64(first); int(i) < len(points); i += step {
		p := points[int(i)]
		got := newTrial(t, c, m, newStore())
		got.disturbed(p.at, p.w, p.again)
		at := fmt.Sprintf("operation %d of %d (%s), %s, again at %d", p.at, len(want.calls), want.calls[p.at-1], p.w.name, p.again)
		got.compare(want, at)
		if c.team != nil && !m.cancel {
			got.checkAgents(at, 1+min(p.again, 1))
		}
		got.closeStore()
		tried++
	}
	if c.team == nil {
		return tried, len(points)
	}
	return tried + strikes(t, c, m, want, newStore), len(points) + 2*len(want.effects)
}

// reading reports whether the operation is a lookup.
func reading(call string) bool {
	return !slices.Contains([]string{"Append", "PutDefinition", "AcquireLease", "ReleaseLease", "Renew", "Release", "Claim", "Disown"}, call)
}

// repeated reports whether the operation is a lookup like the two just before it, as polling makes them.
func repeated(calls []string, at int) bool {
	return at > 1 && reading(calls[at]) && calls[at] == calls[at-1] && calls[at] == calls[at-2]
}
