package definition

import "iter"

// After goes through the nodes that can follow some nodes of the program, at once or later: the nearest first, and each once.
func (p *Program) After(nodes []*Node) iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		seen := map[*Node]bool{nil: true}
		queue := []*Node{}
		add := func(n *Node) {
			if !seen[n] {
				seen[n] = true
				queue = append(queue, n)
			}
		}
		follow := func(n *Node) {
			add(n.Next)
			if n.Switch != nil {
				for _, c := range n.Switch.Cases {
					add(p.Node(c.Target))
				}
				add(p.Node(n.Switch.Default))
			}
			if n.Parallel != nil {
				for _, b := range n.Parallel.Branches {
					add(b.Entry)
				}
			}
		}
		for _, n := range nodes {
			if n != nil {
				follow(n)
			}
		}
		for len(queue) > 0 {
			n := queue[0]
			queue = queue[1:]
			if !yield(n) {
				return
			}
			follow(n)
		}
	}
}
