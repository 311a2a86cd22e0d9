package definition

import (
	"fmt"
	"math"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// Join is a parallel node's join policy.
type Join string

// The three join policies (spec: execution, 6.2).
const (
	JoinAll  Join = "all"
	JoinAny  Join = "any"
	JoinNofM Join = "n_of_m"
)

// ParallelConfig is the config of a parallel node. Its join target is the node's Next.
type ParallelConfig struct {
	Join Join
	// N is the number of branches that must succeed: the configured n for n_of_m, 1 for any, all for all.
	N        int
	Branches []Branch
	// Timeout is how long the branches may take to satisfy the join, 0 without a limit. The reference engine never
	// reads it.
	Timeout time.Duration
}

// Branch is one branch of a parallel node.
type Branch struct {
	Name  string
	Entry *Node // equal to the join target for an empty branch
}

// parallelType is a node that runs several branches at once.
func parallelType() NodeType {
	branch := objectOf("a branch",
		member{"name", filled("the name of a branch").about("A name that no other branch of this node has."), true},
		member{"entry", filled("the entry of a branch").
			about("The id of the branch's first node. From there edges must lead to the join target."), true},
	).not(map[string]string{"nodes": `give the id of the branch's first node as "entry"; edges lead on from it`})
	return NodeType{
		Name: Parallel, Output: OutputNone, Figure: FigureFork, Stub: StubNone,
		Example: `{"id": "both", "type": "parallel", "config": {"join": "all", "branches": [{"name": "first", "entry": "a"}, {"name": "second", "entry": "b"}]}}`,
		description: "Runs several branches at once and continues when enough of them have reached the join target, the node that its own edge names. " +
			"Every branch sees the state at the fork; the changes of the branches are combined in their order.",
		config: objectOf("",
			member{"join", oneOf("join", string(JoinAll), string(JoinAny), string(JoinNofM)).
				about("all: every branch must succeed. any: the first success is enough. n_of_m: n successes are enough. As soon as the outcome is certain, the other branches are cancelled."), true},
			member{"n", atLeast("n", 1).
				about("For n_of_m: how many branches must succeed; at most the number of branches."), false},
			member{"branches", listOf("branches", branch).nonEmpty().
				about("The branches. Their results are combined in this order."), true},
			member{"timeout", filled("the timeout of a parallel node").
				about("How long the branches may take to satisfy the join; then the node fails with TIMEOUT."), false},
		).ruled(needsIf{"join", string(JoinNofM), []string{"n"}}).
			about("The branches, and how many of them must succeed."),
		extended: []extended{catchMember, onTimeoutMember},
		compile:  (*config).parallel,
	}
}

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
				"give each branch its own name, which identifies its pending work")
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

// ownEntry returns the likely entry of a branch that has the entry of another one: the node of the branch's own name, or "".
// Branches that repeat the same nodes, to compare their outputs, have names of other kinds.
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
