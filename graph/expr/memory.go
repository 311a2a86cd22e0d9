package expr

// The memory of an evaluation is bounded by what it makes, whether it still holds that or not: which of it can be reached only the
// interpreter knows. Natives say what they make (price.go); lists, objects and the frames of functions that call themselves are
// counted by natives that the rewriting puts behind or before them.

const (
	// loopBytes is what a round of the loops of the prelude adds to the interpreter's stacks at most; what their update keeps is
	// charged by itself (frames.go).
	loopBytes = 128
	// listBytes are those of a list without its elements.
	listBytes = 24
	// elementBytes is what an element takes in a list that grows: a number in a box, its place in the list and in the
	// shorter one that it is being copied from, and what has not yet been found to be free of those before.
	elementBytes = 80
	// spareBytes of them are free once the list is complete.
	spareBytes = 40
)

// hold counts memory that is made, and reports whether there is room.
func (m *meter) hold(bytes int) bool {
	if bytes < 0 || bytes > m.limits.Memory-m.made {
		m.exceed(overMemory)
		return false
	}
	m.made += bytes
	m.most = max(m.most, bytes)
	return true
}

// release gives back what was held and is known to be free.
func (m *meter) release(bytes int) { m.made -= bytes }

// element returns its input, which is about to become the next element of a list.
func element(m *meter, in any, _ []any) any {
	if !m.hold(elementBytes) {
		return m.exceeded
	}
	return in
}

// complete returns its input, a list of which each element was counted.
func complete(m *meter, in any, _ []any) any {
	m.release(spareBytes * len(in.([]any)))
	return in
}

// held returns its input, a list or an object that the interpreter has just made.
func held(m *meter, in any, _ []any) any {
	bytes := 0
	switch v := in.(type) {
	case []any:
		bytes = listBytes + (elementCost+listBytes/2)*len(v) // it grew
	case map[string]any:
		bytes = objectSize(len(v))
	}
	if !m.hold(bytes) {
		return m.exceeded
	}
	return in
}

// round returns its input. It is called by a loop of the prelude in each round.
func round(m *meter, in any, _ []any) any {
	if !m.hold(loopBytes) {
		return m.exceeded
	}
	return in
}

// largest is the size of the largest text or object that there has been, without what is in it.
func (m *meter) largest() int {
	if !m.mostKnown {
		m.mostKnown = true
		m.most = max(m.most, largestIn(m.state))
	}
	return m.most
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
