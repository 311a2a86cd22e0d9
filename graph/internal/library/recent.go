package library

import (
	"container/list"
	"sync"
)

// recent keeps the values used last, at most maxEntries of them and maxBytes together. Each value is made once, however many callers
// ask for it at the same time. It is safe for concurrent use.
type recent[K comparable, V any] struct {
	maxEntries, maxBytes int

	mu    sync.Mutex
	order list.List // of *entry[K, V], the one used last in front
	byKey map[K]*list.Element
	bytes int
}

type entry[K comparable, V any] struct {
	key   K
	bytes int
	value func() (V, error)
}

func newRecent[K comparable, V any](maxEntries, maxBytes int) *recent[K, V] {
	return &recent[K, V]{maxEntries: maxEntries, maxBytes: maxBytes, byKey: map[K]*list.Element{}}
}

// find returns the value of a key, or false.
func (r *recent[K, V]) find(key K) (v V, found bool) {
	r.mu.Lock()
	e := r.used(key)
	r.mu.Unlock()
	if e == nil {
		return v, false
	}
	v, err := e.value()
	return v, err == nil
}

// get returns the value of a key, made by make if it is absent. bytes is the size of the value. Errors are not kept,
// and each caller gets an error of its own.
func (r *recent[K, V]) get(key K, bytes int, make func() (V, error)) (V, error) {
	r.mu.Lock()
	e := r.used(key)
	added := e == nil
	if added {
		e = r.add(key, bytes, sync.OnceValues(make))
	}
	r.mu.Unlock()
	v, err := e.value()
	switch {
	case err == nil:
		return v, nil
	case added:
		r.drop(e)
		return v, err
	}
	return make()
}

// used returns the entry of a key and marks it as the one used last; nil if it is absent.
func (r *recent[K, V]) used(key K) *entry[K, V] {
	at := r.byKey[key]
	if at == nil {
		return nil
	}
	r.order.MoveToFront(at)
	return at.Value.(*entry[K, V])
}

// add adds an entry and drops the entries unused for longest if there are too many.
func (r *recent[K, V]) add(key K, bytes int, value func() (V, error)) *entry[K, V] {
	e := &entry[K, V]{key, bytes, value}
	r.byKey[key] = r.order.PushFront(e)
	r.bytes += bytes
	for r.order.Len() > r.maxEntries || r.bytes > r.maxBytes {
		r.remove(r.order.Back())
	}
	return e
}

func (r *recent[K, V]) drop(e *entry[K, V]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.byKey[e.key]; at != nil && at.Value == e {
		r.remove(at)
	}
}

func (r *recent[K, V]) remove(at *list.Element) {
	e := r.order.Remove(at).(*entry[K, V])
	delete(r.byKey, e.key)
	r.bytes -= e.bytes
}
