package expr

// The memory of an evaluation is bounded by what it makes, whether it still holds that or not: which of it can be reached only the
// interpreter knows. Natives say what they make (price.go); lists, objects and the frames of functions that call themselves are
// counted by natives that the rewriting puts behind or before them.

const (
	// loopBytes is what a round of the loops of the prelude adds to the interpreter's stacks at most; what their update keeps is
	// charged by itself (frames.go).
	loopBytes = 128
	// bytesPerStep is what a step adds to a list that is not yet complete.
	bytesPerStep = 4
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

// held returns its input, a list or an object that the interpreter has just made.
func held(m *meter, in any, _ []any) any {
	bytes := shallowCost(in)
	if _, object := in.(map[string]any); object {
		bytes += objectCost
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
