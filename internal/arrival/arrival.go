// Package arrival tells whether a run's question was answered while a call was on its way: whoever made that call cannot have seen the
// question that came next.
package arrival

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// Mark is when a call came in.
type Mark struct {
	// answers counts those that this process had recorded.
	answers uint64
	// Time is zero unless other processes may have recorded answers since.
	Time time.Time
}

var answers atomic.Uint64

// Now is the mark of a call that comes in now.
func Now() Mark { return Mark{answers: answers.Load()} }

// At is the mark of a call that is all that its process was started for.
func At(started time.Time) Mark { return Mark{answers.Load(), started} }

type key struct{}

// With returns a context for a call that came in at a mark. Doors that keep calls waiting for their turn use it.
func With(ctx context.Context, m Mark) context.Context { return context.WithValue(ctx, key{}, m) }

// Of is when the call of a context came in, now if nothing says so.
func Of(ctx context.Context) Mark {
	if m, ok := ctx.Value(key{}).(Mark); ok {
		return m
	}
	return Now()
}

// maxRuns is how many runs Answers remembers, the ones answered last. Calls are on their way for a short time.
const maxRuns = 4096

// Answers remembers when questions of runs were answered last. The zero value is ready.
type Answers struct {
	mu   sync.Mutex
	last map[string]uint64
	ring []string // the runs of last in the order in which they came
}

// Recorded notes an answer to a question of a run or of a subworkflow below it. The caller holds the run, so that no call that sees the next
// question can come before the note.
func (a *Answers) Recorded(executionID string) {
	root := history.Root(executionID)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil {
		a.last = map[string]uint64{}
	}
	if _, known := a.last[root]; !known {
		if a.ring = append(a.ring, root); len(a.ring) > maxRuns {
			delete(a.last, a.ring[0])
			a.ring = a.ring[1:]
		}
	}
	a.last[root] = answers.Add(1)
}

// Since reports whether a question of the run, or of another run of its tree, was answered after the mark.
func (a *Answers) Since(executionID string, m Mark) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last[history.Root(executionID)] > m.answers
}
