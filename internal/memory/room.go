package memory

import (
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// How a piece of work waits for room.
const (
	lookInterval = 100 * time.Millisecond
	// longestWait bounds how long a piece of work waits: what it belongs to may be what the others wait for. Of its own time it
	// waits for a quarter at most.
	longestWait = 10 * time.Second
)

// Enter waits, while there is no room, for other work to end, and counts a piece of work in; leave counts it out. Work that is alone
// does not wait, since nothing would make room for it. The error is that of the context.
func (b *Budget) Enter(ctx context.Context) (leave func(), err error) {
	if b == nil {
		return func() {}, nil
	}
	last := b.now().Add(longestWait)
	if deadline, ok := ctx.Deadline(); ok {
		last = b.now().Add(min(longestWait, deadline.Sub(b.now())/4))
	}
	for !b.count(!b.now().Before(last) || b.Admit() == nil) {
		if err := wait.For(ctx, lookInterval); err != nil {
			return nil, err
		}
	}
	return func() { b.underWay.Add(-1) }, nil
}

// count counts a piece of work in, unless there is no room and other work is under way.
func (b *Budget) count(room bool) bool {
	if room {
		b.underWay.Add(1)
		return true
	}
	return b.underWay.CompareAndSwap(0, 1)
}
