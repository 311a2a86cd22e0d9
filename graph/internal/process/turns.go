package process

import (
	"cmp"
	"slices"
	"sync"
)

// Turns remembers which runs were looked at in vain, and when, so that many of them do not keep others from their turn.
type Turns struct {
	mu     sync.Mutex
	round  uint64
	looked map[string]uint64 // by execution id: the last round
}

// Turn is a run to look at; Again says that it was looked at before.
type Turn struct {
	ExecutionID string
	Again       bool
}

// Len returns the number of runs that were looked at.
func (t *Turns) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.looked)
}

// Choose returns those of the runs to look at now, at most n: those not yet looked at in the given order, then the others,
// that of the longest ago first. Runs that are not among the given ones any more are forgotten.
func (t *Turns) Choose(ids []string, n int) []Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(t.looked[a], t.looked[b]) })
	t.round++
	looked := make(map[string]uint64, len(ids))
	var chosen []Turn
	for i, id := range ids {
		last, again := t.looked[id]
		if i < n {
			chosen = append(chosen, Turn{id, again})
			last, again = t.round, true
		}
		if again {
			looked[id] = last
		}
	}
	t.looked = looked
	return chosen
}
