package process

import (
	"context"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

const (
	// countInterval is the interval of counts of the ready runs while there is room for more.
	countInterval = time.Second
	// recountInterval is the shortest interval of counts while there is no room: workers may have taken runs. A count that takes long is
	// repeated after countShare times as long.
	recountInterval = 50 * time.Millisecond
	countShare      = 20
)

// backlog bounds the ready runs of each lane. It counts them seldom, so processes that start runs at the same time may exceed the bound by
// what they start within countInterval.
type backlog struct {
	queue history.Queue
	most  int // 0 means no bound

	mu       sync.Mutex
	counted  time.Time
	took     time.Duration // the last count
	counting bool
	runs     map[history.Lane]int // when counted, and those admitted since
}

// admit counts a run that is about to start in a lane, or returns QUEUE_FULL.
func (b *backlog) admit(ctx context.Context, l history.Lane) error {
	if b.most == 0 {
		return nil
	}
	if b.due(l) {
		if err := b.count(ctx); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := b.runs[l]; n >= b.most {
		return problem.New(problem.QueueFull, "no more runs may wait for a worker in lane %s: %d wait there", l, n).
			WithHint("Start the run again later; nothing was recorded. The operator can start more workers, or raise Options.MaxQueued.")
	}
	b.runs[l]++
	return nil
}

// due reports whether the caller must count.
func (b *backlog) due(l history.Lane) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	interval := countInterval
	if b.runs[l] >= b.most {
		interval = max(recountInterval, countShare*b.took)
	}
	if b.counting || b.runs != nil && time.Since(b.counted) < interval {
		return false
	}
	b.counting = true
	if b.runs == nil {
		b.runs = map[history.Lane]int{}
	}
	return true
}

func (b *backlog) count(ctx context.Context) error {
	begun := time.Now()
	lanes, err := b.queue.Lanes(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counting = false
	if err != nil {
		return err
	}
	b.counted = time.Now()
	b.took = b.counted.Sub(begun)
	clear(b.runs)
	for _, l := range lanes {
		b.runs[l.Lane] = l.Runs
	}
	return nil
}
