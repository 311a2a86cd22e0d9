package schedule

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/execution"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/guard"
)

// Clock is the store's clock as this process reads it: its own, corrected by a difference that is measured now and then. So
// processes on several machines agree on what is due and whose lease has ended.
type Clock struct {
	Store history.Store
	Log   *slog.Logger
	// Go runs a function in a goroutine of its own, Context ends all of them.
	Go      func(func())
	Context context.Context
	// Override, if not nil, is used instead.
	Override func() time.Time

	difference atomic.Int64 // of the store's clock to this process's, in ns
	measured   atomic.Int64 // when it was measured, in Unix ns; 0 if it never was
	logged     atomic.Bool
}

// The rules of measuring.
const (
	clockInterval = 30 * time.Second
	clockSamples  = 5
	// clockPrecision is a difference that is none: the two clocks are the same.
	clockPrecision = 5 * time.Millisecond
	// clockTolerance is a difference that is worth a line in the log.
	clockTolerance = 250 * time.Millisecond
)

// Now returns the time.
func (c *Clock) Now() time.Time {
	if c.Override != nil {
		var now time.Time
		if guard.Call(c.Log, "the clock of the embedder", func() { now = c.Override() }) != nil {
			now = time.Now()
		}
		return now
	}
	now := time.Now()
	switch last := c.measured.Load(); {
	case last == 0:
		c.measured.Store(now.UnixNano())
		c.measure()
	case now.UnixNano()-last > int64(clockInterval) && c.Context.Err() == nil && c.measured.CompareAndSwap(last, now.UnixNano()):
		c.Go(c.measure)
	}
	return now.Add(time.Duration(c.difference.Load()))
}

// measure compares the clocks: the store's at the middle of a call, the fastest of several.
func (c *Clock) measure() {
	best := time.Duration(-1)
	var difference time.Duration
	for range clockSamples {
		asked := time.Now()
		there, err := c.Store.Now(c.Context)
		if err != nil {
			c.Log.Warn("store's clock not read", execution.LogError, err)
			return
		}
		took := time.Since(asked)
		if best < 0 || took < best {
			best, difference = took, there.Sub(asked.Add(took/2))
		}
	}
	if difference.Abs() < clockPrecision {
		difference = 0
	}
	c.difference.Store(int64(difference))
	if difference.Abs() > clockTolerance && c.logged.CompareAndSwap(false, true) {
		c.Log.Warn("this process's clock differs from the store's, which is used", "difference", difference)
	}
}
