package definition

import (
	"fmt"
	"math"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

func (x *config) parallel() {
	branches := x.json.Get("branches").Elements
	p := &ParallelConfig{Join: Join(x.text("join"))}
	x.v.node.Parallel = p
	switch p.Join {
	case JoinAll:
		p.N = len(branches)
	case JoinAny:
		p.N = 1
	case JoinNofM:
		p.N = int(math.Min(x.json.Get("n").Num, math.MaxInt32))
		if p.N > len(branches) {
			x.fatal(problem.ParallelCount, "n",
				fmt.Sprintf("n is %d, but there are %d branches", p.N, len(branches)), "lower n or add branches")
		}
	}
	if p.Join != JoinNofM {
		x.ignored("n", fmt.Sprintf("n means nothing with join %q", p.Join))
	}
	p.Timeout = x.timeout("the branches have all the time they need")

	named, begun := map[string]int{}, map[string]string{}
	at := x.at.member("branches")
	for i, b := range branches {
		name, entry, place := b.Get("name"), b.Get("entry"), at.element(i)
		if first, ok := named[name.Str]; ok {
			x.c.warn(problem.ParallelName, name, place.member("name"), x.v,
				fmt.Sprintf("branch %d has the name %q already", first, clip(name.Str)),
				"give each branch a name of its own: pending work is told apart by it")
		} else {
			named[name.Str] = i
		}
		v := x.c.byID[entry.Str]
		branch := Branch{Name: name.Str}
		switch {
		case v != nil:
			branch.Entry = v.node
			first, again := begun[entry.Str]
			switch {
			case v == x.v.next:
				x.c.warn(problem.ParallelEmpty, entry, place.member("entry"), x.v,
					fmt.Sprintf("the branch %q is empty: it begins at the join target", clip(name.Str)), "")
			case again:
				if own := x.c.ownEntry(name.Str, entry.Str); own != "" {
					x.c.warn(problem.ParallelEntry, entry, place.member("entry"), x.v,
						fmt.Sprintf("the branches %q and %q both begin at %q", clip(first), clip(name.Str), clip(entry.Str)), suggest.Hint(own))
				}
			default:
				begun[entry.Str] = name.Str
			}
		case !x.c.named(entry.Str):
			x.c.danglingEdge = true
			x.c.fail(problem.UnknownNode, entry, place.member("entry"), x.v,
				fmt.Sprintf("there is no node %q", clip(entry.Str)), x.c.suggest(entry.Str))
		}
		p.Branches = append(p.Branches, branch)
		x.v.entries = append(x.v.entries, v)
	}
}

// ownEntry is the node at which a branch that begins where another one does was probably meant to begin: that of its own name; "" for
// none. Branches that do the same several times, to compare what comes out, have names of other kinds.
func (c *compiler) ownEntry(branch, entry string) string {
	own := branch
	if !c.ids[branch] {
		own = c.nearest(branch)
	}
	if own == entry {
		return ""
	}
	return own
}
