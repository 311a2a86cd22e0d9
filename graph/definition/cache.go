package definition

import (
	"container/list"
	"sync"
)

// Cache keeps the programs that were used last, by definition hash, so that an engine compiles each definition once.
// It is safe for concurrent use. Programs compiled with different Options need a cache each: the hash does not distinguish
// them.
type Cache struct {
	capacity int

	mu sync.Mutex
	// recent holds *Program, the one used last in front; byHash finds its elements.
	recent *list.List
	byHash map[string]*list.Element
}

// NewCache returns a cache for up to capacity programs; a capacity below 1 means 1.
func NewCache(capacity int) *Cache {
	return &Cache{capacity: max(capacity, 1), recent: list.New(), byHash: map[string]*list.Element{}}
}

// Get returns the program of a definition hash and marks it as used, nil if it is not there.
func (c *Cache) Get(hash string) *Program {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byHash[hash]
	if !ok {
		return nil
	}
	c.recent.MoveToFront(e)
	return e.Value.(*Program)
}

// Add keeps a program under its hash, in place of one of the same hash, and drops the one unused for longest if there
// are too many. A nil program is left out.
func (c *Cache) Add(p *Program) {
	if p == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byHash[p.Hash]; ok {
		e.Value = p
		c.recent.MoveToFront(e)
		return
	}
	c.byHash[p.Hash] = c.recent.PushFront(p)
	if c.recent.Len() > c.capacity {
		last := c.recent.Back()
		c.recent.Remove(last)
		delete(c.byHash, last.Value.(*Program).Hash)
	}
}

// Len is the number of programs kept.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Len()
}
