package expr

import (
	"errors"
	"math"
	"reflect"
	"sync"

	"github.com/itchyny/gojq"
)

// heap counts the memory of an evaluation: the stacks of the interpreter, which a recursion lets grow, and the values
// that it holds. Values are counted as they are made; once that is too much, those that can still be reached are counted
// instead, as a garbage collector does. Go's own says nothing about a single evaluation, and never the same twice.
//
// The interpreter keeps its stacks to itself. They are read, never written, by reflection; a version of the interpreter
// that has others is noticed when the first program is compiled.
type heap struct {
	stacks [stackCount]reflect.Value
	// made are the bytes made since the last count, and those that it found; ours those of them that the running native
	// has made. in and args are what it was called with.
	made, ours int
	// counted are those of the stacks at the last count.
	counted int
	in      any
	args    []any
	// most is the size of the largest value that there has been, mostKnown that those of the state are among them.
	most      int
	mostKnown bool
	// state is what the evaluation was given: it is not counted.
	state any
	// given are the addresses of what is in the state, seen those of what the last count came to.
	given, seen map[uintptr]struct{}
}

const (
	// bytesPerStep is how much memory a step can make without a charge: an object for each dozen of them.
	bytesPerStep = 32
	// keep is the part of the limit that may be in use after a count, in percent: the rest is for what is made until the
	// next one.
	keep = 80
	// maxCounted is how deeply nested values may be that are counted; what holds deeper ones holds too much.
	maxCounted = 4000
	// longString is the length from which on a text that several hold counts once.
	longString = 64
	// seenBytes is the memory of the count itself, for each value that several may hold.
	seenBytes = 12
)

// stackPaths are the stacks of the interpreter, by the names of their fields, those that hold values first.
var stackPaths = [stackCount][]string{{"stack", "data"}, {"paths", "data"}, {"values"}, {"scopes", "data"}, {"forks"}}

const (
	stackCount     = 5
	stacksOfValues = 3
)

// stacksOf finds the stacks of a running program.
func stacksOf(running gojq.Iter) (stacks [stackCount]reflect.Value, err error) {
	for i, path := range stackPaths {
		v := reflect.ValueOf(running)
		for _, name := range path {
			for v.Kind() == reflect.Pointer {
				v = v.Elem()
			}
			if v.Kind() == reflect.Struct {
				v = v.FieldByName(name)
			}
		}
		if v.Kind() != reflect.Slice {
			return stacks, errors.New("this version of the interpreter has other stacks")
		}
		stacks[i] = v
	}
	return stacks, nil
}

// knownInterpreter is nil if the memory of the interpreter can be counted.
var knownInterpreter = sync.OnceValue(func() error {
	query, err := gojq.Parse(".")
	if err != nil {
		return err
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return err
	}
	_, err = stacksOf(code.Run(nil))
	return err
})

// watch counts the memory of a running program.
func (h *heap) watch(running gojq.Iter, state any) {
	h.stacks, _ = stacksOf(running) // newInstance asked knownInterpreter
	h.state = state
}

// stackBytes is the memory of the stacks. While one grows it is there twice.
func (h *heap) stackBytes() int {
	sum := 0
	for _, s := range h.stacks {
		if s.IsValid() {
			sum += 2 * s.Cap() * int(s.Type().Elem().Size())
		}
	}
	return sum
}

// stepped is for the steps between two looks.
func (h *heap) stepped(m *meter) {
	h.ours = 0
	h.made += unitsPerLook * bytesPerStep
	stacks := h.stackBytes()
	if stacks > m.limits.Memory/100*keep {
		m.exceed(overMemory)
	} else if h.made+stacks-h.counted > m.limits.Memory {
		h.in, h.args = nil, nil
		h.count(m)
	}
}

// call is for a native about to run.
func (h *heap) call(in any, args []any) {
	h.ours, h.in, h.args = 0, in, args
}

// allocate counts memory that the running native is about to make, and reports whether there is room.
func (h *heap) allocate(m *meter, bytes int) bool {
	if bytes > m.limits.Memory {
		m.exceed(overMemory)
		return false
	}
	h.made += bytes
	h.ours += bytes
	h.most = max(h.most, bytes)
	return h.made <= m.limits.Memory || h.count(m)
}

// largest is the size of the largest text or object, without what is in it.
func (h *heap) largest() int {
	if !h.mostKnown {
		h.mostKnown = true
		h.most = max(h.most, largestIn(h.state))
	}
	return h.most
}

func largestIn(v any) int {
	most := 0
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		for _, e := range v {
			most = max(most, largestIn(e))
		}
	case map[string]any:
		most = 2 * memberCost * len(v)
		for _, e := range v {
			most = max(most, largestIn(e))
		}
	}
	return most
}

// count finds what is in use and reports whether there is room left.
func (h *heap) count(m *meter) bool {
	if h.given == nil {
		h.given = map[uintptr]struct{}{}
		c := counter{seen: h.given}
		c.value(reflect.ValueOf(h.state), 0)
		if !m.spend(c.visits) {
			return false
		}
	}
	if h.seen == nil {
		h.seen = map[uintptr]struct{}{}
	}
	clear(h.seen)
	c := counter{given: h.given, seen: h.seen, limit: m.limits.Memory / 100 * keep}
	h.counted = h.stackBytes()
	c.size = h.counted + h.ours
	for _, s := range h.stacks[:stacksOfValues] {
		c.elements(s, 0)
	}
	for _, v := range []any{h.in, h.args, m.texts.last, m.lists.last} {
		c.value(reflect.ValueOf(v), 0)
	}
	h.made = c.size
	if !m.spend(c.visits) {
		return false
	}
	if c.size > c.limit {
		m.exceed(overMemory)
		return false
	}
	return true
}

// counter adds up the memory of values. What several hold counts once. It stops above its limit; 0 is none.
type counter struct {
	seen, given         map[uintptr]struct{}
	size, limit, visits int
}

// first reports whether the counter has not been at an address before.
func (c *counter) first(at uintptr) bool {
	if _, given := c.given[at]; given {
		return false
	}
	before := len(c.seen)
	c.seen[at] = struct{}{}
	if len(c.seen) == before {
		return false
	}
	c.size += seenBytes
	c.visits += 2 // remembering it takes longer
	return true
}

func (c *counter) value(v reflect.Value, depth int) {
	if depth > maxCounted {
		c.size = math.MaxInt / 2
	}
	if c.limit > 0 && c.size > c.limit {
		return
	}
	if v.Kind() == reflect.Interface {
		c.size += scalarCost
		c.value(v.Elem(), depth)
		return
	}
	c.visits++
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && c.first(v.Pointer()) {
			c.value(v.Elem(), depth+1)
		}
	case reflect.String:
		if v.Len() <= longString || c.first(v.Pointer()) {
			c.size += v.Len()
		}
	case reflect.Struct:
		for i := range v.NumField() {
			c.value(v.Field(i), depth+1)
		}
	case reflect.Slice:
		c.slice(v, depth)
	case reflect.Map:
		if v.Len() == 0 || !c.first(v.Pointer()) {
			return
		}
		c.size += objectCost + memberCost*v.Len()
		for entries := v.MapRange(); entries.Next(); {
			c.value(entries.Key(), depth+1)
			c.value(entries.Value(), depth+1)
		}
	}
}

func (c *counter) slice(v reflect.Value, depth int) {
	if v.Cap() == 0 || !c.first(v.Pointer()) {
		return
	}
	c.size += v.Cap() * int(v.Type().Elem().Size())
	c.elements(v, depth)
}

func (c *counter) elements(v reflect.Value, depth int) {
	switch v.Type().Elem().Kind() {
	case reflect.Interface, reflect.Struct, reflect.Slice, reflect.String:
		for i := range v.Len() {
			c.value(v.Index(i), depth+1)
		}
	}
}
