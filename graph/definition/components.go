package definition

import "slices"

// components returns the loops among the nodes that belong: sets of nodes that all lead to each other,
// and nodes that lead to themselves. It is Kosaraju's algorithm with a stack of its own, so that long chains cost no call
// depth: a set is the nodes that lead to the node whose search ended last.
func components(all []*vertex, belongs func(*vertex) bool) [][]*vertex {
	before := map[*vertex][]*vertex{}
	var ended []*vertex
	seen := map[*vertex]bool{}
	for _, root := range all {
		// nil behind a node on the stack stands for the end of its search.
		for stack := []*vertex{root}; len(stack) > 0; {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if v == nil {
				ended = append(ended, stack[len(stack)-1])
				stack = stack[:len(stack)-1]
				continue
			}
			if seen[v] || !belongs(v) {
				continue
			}
			seen[v] = true
			stack = append(stack, v, nil)
			for _, to := range mainPath(v) {
				if to != nil {
					before[to] = append(before[to], v)
					stack = append(stack, to)
				}
			}
		}
	}
	var loops [][]*vertex
	taken := map[*vertex]bool{}
	for _, root := range slices.Backward(ended) {
		if taken[root] {
			continue
		}
		set, _ := walk([]*vertex{root}, func(v *vertex) []*vertex {
			return slices.DeleteFunc(slices.Clone(before[v]), func(from *vertex) bool { return taken[from] })
		})
		for _, v := range set {
			taken[v] = true
		}
		if len(set) > 1 || slices.Contains(mainPath(root), root) {
			loops = append(loops, set)
		}
	}
	return loops
}
