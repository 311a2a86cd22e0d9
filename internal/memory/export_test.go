package memory

import "time"

// New returns a budget over a heap that a test invents.
func New(most int64, live func() int64, collect func(), now func() time.Time) *Budget {
	return &Budget{most: most, live: live, collect: collect, now: now}
}

// LimitFor is limitFor.
var LimitFor = limitFor
