package graph_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

var errDisk = errors.New("the disk is gone")

// faulty is a store whose process dies at its n-th append: from then on nothing is written. With late set the fatal
// append is written, and only its answer is lost.
type faulty struct {
	history.Store
	mu   sync.Mutex
	left int
	late bool
	dead bool
}

func (f *faulty) Append(ctx context.Context, b history.Batch) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return errDisk
	}
	if f.left == 0 {
		f.dead = true
		if f.late {
			if err := f.Store.Append(ctx, b); err != nil {
				return err
			}
		}
		return errDisk
	}
	f.left--
	return f.Store.Append(ctx, b)
}

func (f *faulty) Renew(ctx context.Context, process string, ttl time.Duration) error {
	if f.isDead() {
		return errDisk
	}
	return f.Store.Renew(ctx, process, ttl)
}

func (f *faulty) Release(ctx context.Context, process string) error {
	if f.isDead() {
		return errDisk
	}
	return f.Store.Release(ctx, process)
}

func (f *faulty) Claim(ctx context.Context, process string, ids ...string) ([]string, error) {
	if f.isDead() {
		return nil, errDisk
	}
	return f.Store.Claim(ctx, process, ids...)
}

func (f *faulty) Disown(ctx context.Context, process string, ids ...string) error {
	if f.isDead() {
		return errDisk
	}
	return f.Store.Disown(ctx, process, ids...)
}

func (f *faulty) isDead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

// flaky is a store whose appends fail for a while. With late set they are written, and only the answers are lost.
type flaky struct {
	history.Store
	mu    sync.Mutex
	fails int
	late  bool
}

func (f *flaky) Append(ctx context.Context, b history.Batch) error {
	f.mu.Lock()
	failing := f.fails > 0 && b.ExpectedSeq > 0
	if failing {
		f.fails--
	}
	f.mu.Unlock()
	if failing && f.late {
		if err := f.Store.Append(ctx, b); err != nil {
			return err
		}
	}
	if failing {
		return errDisk
	}
	return f.Store.Append(ctx, b)
}

// counting counts what is asked of a store.
type counting struct {
	history.Store
	mu             sync.Mutex
	appends, reads int
	records        int
	positions      int
}

func (c *counting) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.appends, c.reads, c.records, c.positions = 0, 0, 0, 0
}

func (c *counting) Append(ctx context.Context, b history.Batch) error {
	c.mu.Lock()
	c.appends++
	if b.Position != nil {
		c.positions++
	}
	c.mu.Unlock()
	return c.Store.Append(ctx, b)
}

func (c *counting) read(records int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	c.records += records
}

func (c *counting) Read(ctx context.Context, id string, from int64, limit int) ([]history.Record, error) {
	rs, err := c.Store.Read(ctx, id, from, limit)
	c.read(len(rs))
	return rs, err
}

func (c *counting) Execution(ctx context.Context, id string) (history.Execution, error) {
	c.read(0)
	return c.Store.Execution(ctx, id)
}

func (c *counting) Position(ctx context.Context, id string) (int64, []byte, error) {
	c.read(0)
	return c.Store.Position(ctx, id)
}
