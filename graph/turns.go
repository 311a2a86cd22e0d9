package graph

import (
	"cmp"
	"slices"
	"sync"
)

// turns remembers which runs were looked at in vain, and when, so that many of them do not keep others from their turn.
type turns struct {
	mu     sync.Mutex
	round  uint64
	looked map[string]uint64 // by execution id: the last round
}

// turn is a run to look at; again says that it was looked at before.
type turn struct {
	id    string
	again bool
}

func (t *turns) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.looked)
}

// choose gives those of the runs to look at now, at most n: those not yet looked at in the given order, then the others,
// that of the longest ago first. What is not among the runs any more is forgotten.
func (t *turns) choose(ids []string, n int) []turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(t.looked[a], t.looked[b]) })
	t.round++
	looked := make(map[string]uint64, len(ids))
	var chosen []turn
	for i, id := range ids {
		last, again := t.looked[id]
		if i < n {
			chosen = append(chosen, turn{id, again})
			last, again = t.round, true
		}
		if again {
			looked[id] = last
		}
	}
	t.looked = looked
	return chosen
}
