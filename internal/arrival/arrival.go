// Package arrival records when calls arrived and when questions of runs were answered. If a question was answered after a call arrived, its
// caller cannot have seen the next question.
package arrival

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// Mark is the time at which a call arrived.
type Mark struct {
	// answers is the number of answers recorded by this process.
	answers uint64
	// Time is zero unless other processes may have recorded answers since.
	Time time.Time
}

var answers atomic.Uint64

// Now returns the mark of a call that arrives now.
func Now() Mark { return Mark{answers: answers.Load()} }

// At returns the mark of the only call of a process.
func At(started time.Time) Mark { return Mark{answers.Load(), started} }

type key struct{}

// With returns a context with the mark of a call. Transports that queue calls use it.
func With(ctx context.Context, m Mark) context.Context { return context.WithValue(ctx, key{}, m) }

// Of returns the mark of a context; without one, the current mark.
func Of(ctx context.Context) Mark {
	if m, ok := ctx.Value(key{}).(Mark); ok {
		return m
	}
	return Now()
}

// maxAnswers is the number of answers that Answers keeps. Calls are on their way for a short time.
const maxAnswers = 4096

// Answers records when questions of runs were last answered. The zero value is ready to use.
type Answers struct {
	mu     sync.Mutex
	last   map[string]uint64 // the last answer of each root run
	recent []answer          // the oldest first
}

type answer struct {
	root string
	n    uint64
}

// Recorded records an answer to a question of a run or its subworkflow. The caller has locked the run, so that the answer is recorded before
// any call can see the next question.
func (a *Answers) Recorded(executionID string) {
	root := history.Root(executionID)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil {
		a.last = map[string]uint64{}
	}
	n := answers.Add(1)
	a.last[root] = n
	if a.recent = append(a.recent, answer{root, n}); len(a.recent) > maxAnswers {
		if oldest := a.recent[0]; a.last[oldest.root] == oldest.n {
			delete(a.last, oldest.root)
		}
		a.recent = a.recent[1:]
	}
}

// Since reports whether a question of the run, or of another run of its tree, was answered after the mark.
func (a *Answers) Since(executionID string, m Mark) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last[history.Root(executionID)] > m.answers
}
