package httpworkflow

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
)

// cache keeps documents by address, those that were used last. An entry is used by one resolution at a time, so that an
// address is asked once however many runs want it.
type cache struct {
	most int

	mu      sync.Mutex
	entries map[string]*entry
	// order holds the entries that are not in use, the last used first.
	order *list.List
}

// entry is the cached definition of an address. Only its holder may use the fields below turn.
type entry struct {
	address string
	users   int
	place   *list.Element
	turn    chan struct{}

	document   *definition.Document
	etag       string
	freshUntil time.Time
	// forget is set if the document must not be kept.
	forget bool
}

func (c *cache) init(most int) {
	c.most, c.entries, c.order = most, map[string]*entry{}, list.New()
}

// acquire returns the entry of an address, a new one if necessary, for use until release. It waits for its turn or
// for the end of ctx.
func (c *cache) acquire(ctx context.Context, address string) (*entry, error) {
	c.mu.Lock()
	e := c.entries[address]
	if e == nil {
		e = &entry{address: address, turn: make(chan struct{}, 1)}
		c.entries[address] = e
	}
	e.users++
	if e.place != nil {
		c.order.Remove(e.place)
		e.place = nil
	}
	c.mu.Unlock()
	select {
	case e.turn <- struct{}{}:
		return e, nil
	case <-ctx.Done():
		c.drop(e, false)
		return nil, ctx.Err()
	}
}

// release ends the use of an entry.
func (c *cache) release(e *entry) {
	if e.forget {
		e.document, e.etag, e.forget = nil, "", false
	}
	empty := e.document == nil
	<-e.turn
	c.drop(e, empty)
}

// drop counts one user less. Of the unused entries only the last ones are kept, without empty ones.
func (c *cache) drop(e *entry, empty bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.users--; e.users > 0 {
		return
	}
	if empty {
		delete(c.entries, e.address)
		return
	}
	e.place = c.order.PushFront(e)
	for c.order.Len() > c.most {
		oldest := c.order.Remove(c.order.Back()).(*entry)
		oldest.place = nil
		delete(c.entries, oldest.address)
	}
}
