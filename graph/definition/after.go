package definition

import "iter"

// Targets returns the nodes that can follow a node: its successor, the targets of a switch, a loop or a catch, the entries of
// branches, its compensation. Each is there once.
func (p *Program) Targets(n *Node) []*Node {
	var list []*Node
	seen := map[*Node]bool{nil: true}
	add := func(n *Node) {
		if !seen[n] {
			seen[n] = true
			list = append(list, n)
		}
	}
	add(n.Next)
	for _, k := range n.Catches {
		add(k.Target)
	}
	if n.Compensation != nil {
		add(n.Compensation.Node)
	}
	if n.Switch != nil {
		for _, c := range n.Switch.Cases {
			add(p.Node(c.Target))
		}
		add(p.Node(n.Switch.Default))
	}
	if n.Loop != nil {
		add(n.Loop.Body)
		add(n.Loop.OnLimit)
	}
	if n.Parallel != nil {
		for _, b := range n.Parallel.Branches {
			add(b.Entry)
		}
	}
	return list
}

// After goes through the nodes that can follow some nodes of the program, at once or later: the nearest first, and each once.
func (p *Program) After(nodes []*Node) iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		seen := map[*Node]bool{}
		queue := []*Node{}
		follow := func(n *Node) {
			for _, next := range p.Targets(n) {
				if !seen[next] {
					seen[next] = true
					queue = append(queue, next)
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
