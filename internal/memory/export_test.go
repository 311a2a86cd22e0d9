package memory

import "time"

// New returns a budget over a heap that a test invents.
func New(most int64, live func() int64, collect func(), now func() time.Time) *Budget {
	return &Budget{most: most, allocated: live, live: live, collect: collect, now: now}
}

// Allocated gives a budget of New a figure of its own for what is allocated.
func Allocated(b *Budget, allocated func() int64) { b.allocated = allocated }
