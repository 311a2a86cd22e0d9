package lint

import (
	"maps"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// kinds is a set of JSON kinds.
type kinds uint8

const (
	null kinds = 1 << iota
	boolean
	number
	text
	array
	object

	nothing kinds = 0
	all     kinds = 1<<6 - 1
)

// kindNames are the kinds with their articles, in the order of the bits, which is that of jq.
var kindNames = []string{"null", "a boolean", "a number", "a text", "an array", "an object"}

func (k kinds) String() string {
	var names []string
	for i, name := range kindNames {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return problem.OrList(names)
}

func kindOf(v any) kinds {
	switch jsonvalue.KindOf(v) {
	case jsonvalue.Null:
		return null
	case jsonvalue.Bool:
		return boolean
	case jsonvalue.Number:
		return number
	case jsonvalue.String:
		return text
	case jsonvalue.Array:
		return array
	}
	return object
}

// shape describes the known facts about a value. Shapes are shared: they are never changed once they are made.
type shape struct {
	kinds kinds
	// unsure is set if the value may be something else as well: the listed members then only serve to find similar names.
	unsure bool
	// texts are the only texts, nil for any.
	texts []string
	// members are those of an object that have names, rest is the others; nil if there are no others.
	members map[string]*shape
	rest    *shape
	// sorted are the names of the members where they are asked for often. A copy with added members has more names.
	sorted []string
	// fixed is set if the engine makes the object, so that no other members are meant by names that are like these.
	fixed bool
	// items are the elements of an array.
	items *shape
}

// anything is an unknown value.
var anything = func() *shape {
	s := &shape{kinds: all, unsure: true}
	s.rest, s.items = s, s
	return s
}()

// only is a value of some kinds, otherwise unknown.
func only(k kinds) *shape { return &shape{kinds: k, rest: anything, items: anything} }

func listOf(items *shape) *shape { return &shape{kinds: array, items: items} }

func oneOf(texts ...string) *shape { return &shape{kinds: text, texts: texts} }

// record is an object with these members and no others.
func record(members map[string]*shape) *shape { return &shape{kinds: object, members: members} }

// fixed is a record that the engine makes.
func fixed(members map[string]*shape) *shape {
	return &shape{kinds: object, members: members, fixed: true}
}

// limited returns a shape without the kinds that are not in k.
func (s *shape) limited(k kinds) *shape {
	if s.kinds&^k == 0 {
		return s
	}
	out := *s
	out.kinds &= k
	return &out
}

// orNull returns a shape that may be null as well.
func (s *shape) orNull() *shape {
	if s.kinds&null != 0 {
		return s
	}
	out := *s
	out.kinds |= null
	return &out
}

// doubted returns a shape that may be something else as well.
func (s *shape) doubted() *shape {
	if s.unsure {
		return s
	}
	out := *s
	out.unsure, out.kinds = true, all
	if out.rest == nil {
		out.rest = anything
	}
	if out.items == nil {
		out.items = anything
	}
	return &out
}

// is reports whether a value certainly has one of these kinds.
func (s *shape) is(k kinds) bool { return !s.unsure && s.kinds&^k == 0 }

// names lists the members that have names, sorted.
func (s *shape) names() []string {
	if s.sorted != nil && len(s.sorted) == len(s.members) {
		return s.sorted
	}
	return slices.Sorted(maps.Keys(s.members))
}

// budget is how much work may still be done on shapes: schemas can share their parts, so that their size does not bound it.
type budget int

// take reports whether there is room for some work, and takes it.
func (b *budget) take(n int) bool {
	*b -= budget(n)
	return *b >= 0
}

// shapeOf is the shape of a value that is written out.
func shapeOf(v any, b *budget, depth int) *shape {
	if depth > maxDepth || !b.take(1) {
		return anything
	}
	switch v := v.(type) {
	case string:
		return oneOf(v)
	case []any:
		s := &shape{}
		for _, e := range v[:min(len(v), maxElements)] {
			s = union(s, shapeOf(e, b, depth+1), b, depth)
		}
		if len(v) > maxElements || len(v) == 0 {
			s = anything
		}
		return listOf(s)
	case map[string]any:
		members := make(map[string]*shape, len(v))
		for name, e := range v {
			members[name] = shapeOf(e, b, depth+1)
		}
		return record(members)
	}
	return only(kindOf(v))
}

// Bounds of shapes: deeper or larger ones count as unknown.
const (
	maxDepth    = 12
	maxTexts    = 100
	maxMembers  = 500
	maxElements = 20
)

// union is a value that has one shape or the other.
func union(a, b *shape, left *budget, depth int) *shape {
	switch {
	case a == b || b.kinds == nothing:
		return a
	case a.kinds == nothing:
		return b
	case depth > maxDepth || len(a.members)+len(b.members) > maxMembers, !left.take(1 + len(a.members) + len(b.members)):
		return anything
	}
	out := &shape{kinds: a.kinds | b.kinds, unsure: a.unsure || b.unsure}
	switch one, other := a.kinds&text != 0, b.kinds&text != 0; {
	case !other || b.unsure && b.texts == nil:
		out.texts = a.texts
	case !one || a.unsure && a.texts == nil:
		out.texts = b.texts
	case a.texts != nil && b.texts != nil && len(a.texts)+len(b.texts) <= maxTexts:
		out.texts = slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.texts, b.texts))))
	}
	switch one, other := a.kinds&array != 0, b.kinds&array != 0; {
	case !other:
		out.items = a.items
	case !one:
		out.items = b.items
	default:
		out.items = union(a.items, b.items, left, depth+1)
	}
	switch one, other := a.kinds&object != 0, b.kinds&object != 0; {
	case !other:
		out.members, out.rest, out.fixed = a.members, a.rest, a.fixed
	case !one:
		out.members, out.rest, out.fixed = b.members, b.rest, b.fixed
	default:
		out.fixed = a.fixed && b.fixed
		out.members = make(map[string]*shape, len(a.members)+len(b.members))
		for name, s := range a.members {
			out.members[name] = beside(s, b, name, left, depth)
		}
		for name, s := range b.members {
			if out.members[name] == nil {
				out.members[name] = beside(s, a, name, left, depth)
			}
		}
		switch {
		case a.rest == nil:
			out.rest = b.rest
		case b.rest == nil:
			out.rest = a.rest
		default:
			out.rest = union(a.rest, b.rest, left, depth+1)
		}
	}
	return out
}

// beside is a member that is of shape s, or the value of other under its name.
func beside(s, other *shape, name string, left *budget, depth int) *shape {
	if member := other.members[name]; member != nil {
		return union(s, member, left, depth+1)
	}
	if other.rest != nil {
		return union(s, other.rest, left, depth+1)
	}
	return s
}
