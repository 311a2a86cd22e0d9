package definition

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Warnings about branches that set the same key of the state. Without a reducer the join keeps the value of one branch and loses
// those of the others. Only keys that the definition names are known: those of assignments, and of an llm_call's output_schema.

// write is one key of the state that a node sets.
type write struct {
	key    string
	vertex *vertex
	branch int
	json   *jsonvalue.Node
	at     *path
	// literal is set if the value is always the same one.
	literal *Assignment
}

// lintOverwrites checks every parallel node; one warning for each key, at the later branch. Branches may share their tails, so
// its steps are bounded, as those of checkBranches are; beyond the bound there are no warnings.
func (c *compiler) lintOverwrites() {
	if c.lost.any() || c.rules == nil {
		return
	}
	steps := maxSteps
	for _, v := range c.vertices {
		if v.node.Type == Parallel && v.sound && v.node.Parallel.N > 1 { // with 1 the changes of a single branch are kept
			c.lintBlock(v, &steps)
		}
	}
}

func (c *compiler) lintBlock(p *vertex, steps *int) {
	first, reported := map[string]write{}, map[string]bool{}
	for i, entry := range p.entries {
		order, _ := walk([]*vertex{entry}, func(v *vertex) []*vertex {
			if *steps--; *steps < 0 || v == p.next || v == p || v.node.Type == End {
				return nil
			}
			return everywhere(v)
		})
		for _, v := range order {
			if v == p.next || v == p {
				continue
			}
			for _, w := range v.writes() {
				if *steps--; *steps < 0 {
					return
				}
				w.branch = i
				before, again := first[w.key]
				_, reduced := c.rules.Reducers[w.key]
				switch {
				case reduced || reported[w.key]:
				case !again:
					first[w.key] = w
				case before.branch != i && !sameLiteral(before, w):
					reported[w.key] = true
					c.warnOverwrite(p, before, w)
				}
			}
		}
	}
}

// writes lists the keys that a node is known to set.
func (v *vertex) writes() []write {
	var out []write
	switch node := v.node; {
	case node.SetState != nil:
		at, n := v.at.member("config").member("assignments"), v.json.Get("config").Get("assignments")
		for i := range node.SetState.Assignments {
			a := &node.SetState.Assignments[i]
			w := write{key: a.Key, vertex: v, json: n.Get(a.Key), at: at.member(a.Key)}
			if a.JQ == nil {
				w.literal = a
			}
			out = append(out, w)
		}
	case node.Loop != nil && node.Loop.Counter != "":
		n, at := v.json.Get("loop").Get("counter"), v.at.member("loop").member("counter")
		out = append(out, write{key: node.Loop.Counter, vertex: v, json: n, at: at})
	case node.Activity != nil && node.Activity.OutputSchema != nil:
		properties := v.json.Get("config").Get("output_schema").Get("properties")
		if properties == nil || properties.Kind != jsonvalue.Object {
			break
		}
		at := v.at.member("config").member("output_schema").member("properties")
		for _, m := range properties.Members {
			out = append(out, write{key: m.Name, vertex: v, json: m.Value, at: at.member(m.Name)})
		}
	}
	return out
}

// sameLiteral reports whether it does not matter which of two values stays.
func sameLiteral(a, b write) bool {
	return a.literal != nil && b.literal != nil && jsonvalue.Equal(a.literal.Literal, b.literal.Literal)
}

func (c *compiler) warnOverwrite(p *vertex, before, after write) {
	branches := p.node.Parallel.Branches
	c.warn(problem.ParallelOverwrite, after.json, after.at, after.vertex,
		fmt.Sprintf("the branches %q and %q of the parallel node %q both set %q, which has no reducer: at the join the later value replaces the one that %q sets",
			clip(branches[before.branch].Name), clip(branches[after.branch].Name), clip(p.node.ID), clip(after.key), clip(before.vertex.node.ID)),
		fmt.Sprintf(`give each branch a key of its own, or write "reducer": "append" or "merge" at /state_schema/properties/%s ("overwrite" if the last value is the one you want)`,
			clip(jsonvalue.EscapePointer(after.key))))
}
