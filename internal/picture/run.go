package picture

import (
	"fmt"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// State is the state of a node in a run.
type State string

// The states of a node; "" is a node that was not visited.
const (
	Done    State = "done"
	Failed  State = "failed"
	Now     State = "now" // the run is here
	Stopped State = "stopped"
)

// passages are the nodes that a run visited and the edges that it took.
type passages struct {
	nodes map[string]passage
	edges map[step]bool
}

type passage struct {
	visits int
	state  State
	took   time.Duration
}

type step struct {
	from, to string
	failure  bool
}

// passagesOf adds the visits of a run up, by node. run is nil for a definition alone.
func passagesOf(run *timeline.Run) passages {
	p := passages{nodes: map[string]passage{}, edges: map[step]bool{}}
	if run == nil {
		return p
	}
	for _, v := range run.Visits {
		if v.IsItem() {
			continue
		}
		n := p.nodes[v.Node]
		n.visits++
		if s := stateOf(v); n.visits == 1 || n.state != Now {
			n.state = s
		}
		if !v.Ended.IsZero() {
			n.took += v.Took(v.Ended)
		}
		p.nodes[v.Node] = n
		switch {
		case v.Compensates != "":
			p.edges[step{v.Undone(), v.Node, true}] = true
		case v.From != nil:
			p.take(v.From, v.Node, v.From != v.Block())
		}
		if v.State == timeline.Succeeded && v.Definition != nil && v.Definition.Next != nil {
			for _, b := range v.Branches {
				next := v.Definition.Next.ID
				if last := b.Lead(); last != nil && (last.State == timeline.Succeeded || last.Next == next) {
					p.take(last, next, true)
				}
			}
		}
	}
	return p
}

// take notes an edge. It is that of a failure if the visit behind it failed, unless it leads into a branch.
func (p *passages) take(from *timeline.Visit, to string, mayFail bool) {
	p.edges[step{from.Node, to, mayFail && from.State == timeline.Failed}] = true
}

func stateOf(v *timeline.Visit) State {
	switch v.State {
	case timeline.Succeeded:
		return Done
	case timeline.Failed:
		return Failed
	case timeline.Dropped:
		return Stopped
	}
	return Now
}

// facts describes the visits of a node in a few words, "" without any.
func (p *passages) facts(id string) string {
	n, ok := p.nodes[id]
	if !ok {
		return ""
	}
	text := string(n.state)
	if n.visits > 1 {
		text += fmt.Sprintf(", %d visits", n.visits)
	}
	if n.state != Now || n.visits > 1 {
		text += ", " + timeline.Elapsed(n.took)
	}
	return text
}
