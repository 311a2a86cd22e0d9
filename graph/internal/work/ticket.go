package work

import (
	"container/heap"
	"context"
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

	lane       *lane
	round, seq uint64
	at         [orders]int // its place in each order, -1 outside
	stop       func() bool
}

func (t *Ticket) waits() bool { return t.lane != nil && t.at[byRound] >= 0 }

// order is an order of tickets.
type order int

const (
	// byRound: by round, then priority, then arrival.
	byRound order = iota
	// byPriority: by priority, then arrival. It holds only the tickets that may pass others.
	byPriority
	byArrival
	orders
)

func (o order) less(a, b *Ticket) bool {
	switch {
	case o == byRound && a.round != b.round:
		return a.round < b.round
	case o != byArrival && a.Priority != b.Priority:
		return a.Priority > b.Priority
	}
	return a.seq < b.seq
}

// sorted holds tickets, the next one in its order first.
type sorted struct {
	order   order
	tickets []*Ticket
}

func (s *sorted) add(t *Ticket) {
	if t.at[s.order] < 0 {
		heap.Push(s, t)
	}
}

func (s *sorted) remove(t *Ticket) {
	if i := t.at[s.order]; i >= 0 {
		heap.Remove(s, i)
	}
}

func (s *sorted) Len() int           { return len(s.tickets) }
func (s *sorted) Less(i, j int) bool { return s.order.less(s.tickets[i], s.tickets[j]) }

func (s *sorted) Swap(i, j int) {
	s.tickets[i], s.tickets[j] = s.tickets[j], s.tickets[i]
	s.tickets[i].at[s.order], s.tickets[j].at[s.order] = i, j
}

// Push adds a *Ticket, for package heap.
func (s *sorted) Push(v any) {
	t := v.(*Ticket)
	t.at[s.order] = len(s.tickets)
	s.tickets = append(s.tickets, t)
}

// Pop removes the last ticket, for package heap.
func (s *sorted) Pop() any {
	last := len(s.tickets) - 1
	t := s.tickets[last]
	s.tickets[last] = nil
	s.tickets = s.tickets[:last]
	t.at[s.order] = -1
	return t
}
