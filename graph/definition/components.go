package definition

// components returns the loops among the nodes for which belongs holds: sets of nodes each of which leads to all others, and nodes
// that lead to themselves. It is Tarjan's algorithm with a stack of its own, so that long chains cost no call depth.
func components(all []*vertex, belongs func(*vertex) bool) [][]*vertex {
	t := tarjan{index: map[*vertex]int{}, low: map[*vertex]int{}, onStack: map[*vertex]bool{}, belongs: belongs}
	for _, v := range all {
		if _, seen := t.index[v]; !seen && belongs(v) {
			t.search(v)
		}
	}
	return t.loops
}

type tarjan struct {
	belongs    func(*vertex) bool
	index, low map[*vertex]int
	stack      []*vertex
	onStack    map[*vertex]bool
	loops      [][]*vertex
}

// frame is one call of the recursive form: a node, and how many of its successors have been looked at.
type frame struct {
	v    *vertex
	done int
}

func (t *tarjan) search(root *vertex) {
	frames := []frame{t.enter(root)}
	for len(frames) > 0 {
		f := &frames[len(frames)-1]
		next := mainPath(f.v)
		if f.done < len(next) {
			to := next[f.done]
			f.done++
			if to == nil || !t.belongs(to) {
				continue
			}
			if _, seen := t.index[to]; !seen {
				frames = append(frames, t.enter(to))
			} else if t.onStack[to] {
				t.low[f.v] = min(t.low[f.v], t.index[to])
			}
			continue
		}
		v := f.v
		frames = frames[:len(frames)-1]
		if len(frames) > 0 {
			above := frames[len(frames)-1].v
			t.low[above] = min(t.low[above], t.low[v])
		}
		if t.low[v] == t.index[v] {
			t.leave(v)
		}
	}
}

func (t *tarjan) enter(v *vertex) frame {
	t.index[v] = len(t.index)
	t.low[v] = t.index[v]
	t.stack = append(t.stack, v)
	t.onStack[v] = true
	return frame{v: v}
}

// leave takes a finished set off the stack and keeps it if it is a loop.
func (t *tarjan) leave(v *vertex) {
	cut := len(t.stack) - 1
	for t.stack[cut] != v {
		cut--
	}
	set := append([]*vertex(nil), t.stack[cut:]...)
	t.stack = t.stack[:cut]
	for _, member := range set {
		t.onStack[member] = false
	}
	if len(set) > 1 {
		t.loops = append(t.loops, set)
		return
	}
	for _, to := range mainPath(v) {
		if to == v {
			t.loops = append(t.loops, set)
			return
		}
	}
}
