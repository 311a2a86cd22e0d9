package limit

import "context"

// Ticket is an attempt that waits for its turn.
type Ticket struct {
	// Run shares the turns with other runs; of two runs in the same round the one with the higher Priority is first.
	Run      string
	Priority int
	Classes  []string
	// Context ends the waiting.
	Context context.Context
	// Turn is called when the turn has come. The attempt calls done, once, when it is over. Left is called instead if the waiting
	// has ended. Both are called without a lock, and return soon.
	Turn func(done func())
	Left func()

	lane       *lane
	round, seq uint64
	index      int // in the lane's heap, -1 outside
	stop       func() bool
}

// ticketHeap orders tickets by round, then priority, then arrival.
type ticketHeap []*Ticket

func (h ticketHeap) Len() int { return len(h) }

func (h ticketHeap) Less(i, j int) bool {
	switch a, b := h[i], h[j]; {
	case a.round != b.round:
		return a.round < b.round
	case a.Priority != b.Priority:
		return a.Priority > b.Priority
	default:
		return a.seq < b.seq
	}
}

func (h ticketHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push adds a *Ticket.
func (h *ticketHeap) Push(v any) {
	t := v.(*Ticket)
	t.index = len(*h)
	*h = append(*h, t)
}

// Pop removes the last ticket.
func (h *ticketHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.index = -1
	return t
}
