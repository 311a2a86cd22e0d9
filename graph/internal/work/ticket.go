package work

import (
	"container/list"
	"context"
	"time"
)

// Ticket is an attempt that waits for its turn.
type Ticket struct {
	// Run shares the turns with other runs; see Queue.
	Run      string
	Priority int
	Classes  []string
	// Context ends the waiting.
	Context context.Context
	// Turn is called at the ticket's turn. The attempt calls done once, when it has ended. Left is called instead if the context has
	// ended. Both are called without a lock and must return soon.
	Turn func(done func())
	Left func()

	lane           *lane
	inLane, inLine *list.Element // nil unless it waits
	seq            uint64        // Queue.seq at its arrival
	entered        time.Time
	stop           func() bool
}

func (t *Ticket) waits() bool { return t.inLane != nil }
