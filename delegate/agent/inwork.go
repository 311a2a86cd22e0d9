package agent

import (
	"context"
	"math"
	"sync"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// maxInWork is how many bytes of large results are masked, cut and recorded at the same time; others wait. Each takes a multiple of its size
// meanwhile.
const maxInWork = 256 << 20

// leastInWork is the size above which a result counts.
const leastInWork = 1 << 20

// inWork shares room among large results, in order of arrival. The zero value is ready to use.
type inWork struct {
	mu      sync.Mutex
	taken   int
	waiting []*waiting
}

type waiting struct {
	bytes int
	ready chan struct{}
}

// take waits for room. The error is the context's.
func (r *inWork) take(ctx context.Context, bytes int) error {
	r.mu.Lock()
	if len(r.waiting) == 0 && r.taken+bytes <= maxInWork {
		r.taken += bytes
		r.mu.Unlock()
		return nil
	}
	me := &waiting{bytes, make(chan struct{})}
	r.waiting = append(r.waiting, me)
	r.mu.Unlock()
	select {
	case <-me.ready:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, w := range r.waiting {
		if w == me {
			r.waiting = append(r.waiting[:i:i], r.waiting[i+1:]...)
			r.admit()
			return context.Cause(ctx)
		}
	}
	r.taken -= bytes // it was let in at this moment
	r.admit()
	return context.Cause(ctx)
}

func (r *inWork) leave(bytes int) {
	if bytes == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken -= bytes
	r.admit()
}

// admit lets in those that have room now. The caller holds the lock.
func (r *inWork) admit() {
	for len(r.waiting) > 0 && r.taken+r.waiting[0].bytes <= maxInWork {
		r.taken += r.waiting[0].bytes
		close(r.waiting[0].ready)
		r.waiting = r.waiting[1:]
	}
}

// weighed is how much room a result takes: 0 for a small one.
func weighed(in agentloop.Input) int {
	returned, ok := in.(agentloop.ToolReturned)
	if !ok || returned.Failure != nil {
		return 0
	}
	plain, err := jsonvalue.Normalize(returned.Output)
	if err != nil || jsonvalue.Size(plain, leastInWork) <= leastInWork {
		return 0
	}
	return min(jsonvalue.Size(plain, maxInWork), maxInWork)
}

// leastKept is how much of a large result is kept where the run has no room left for more.
const leastKept = 64 << 10

// most is how much of a large result its run has room for. As text in JSON it may take twice its size, and something is to be left.
func (w *attempt) most(ctx context.Context, held int) int {
	j, ok := w.journal.(activities.Roomed)
	if held == 0 || !ok {
		return math.MaxInt
	}
	room, err := j.Room(ctx)
	if err != nil {
		return math.MaxInt // recording it fails, too, or there is room
	}
	return int(max(min(room/4, math.MaxInt32), leastKept))
}
