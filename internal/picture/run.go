package picture

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
)

// State is how the last visit of a node stands.
type State string

// The states of a node in a run; "" is a node that was not visited.
const (
	Done    State = "done"
	Failed  State = "failed"
	Now     State = "now" // the run is here
	Stopped State = "stopped"
)

// Run is what the records of a run say of the nodes and edges of its definition. A nil Run says nothing.
//
// Facts say when a node began and ended. Commands only end what no fact ends: those of a branch that is held back come later.
type Run struct {
	program *definition.Program
	nodes   map[string]*passage
	taken   map[step]bool
	// last is the newest node of the run itself, and of each branch that has not been joined.
	last map[branch]string
	// in is the innermost branch of each node that is in one.
	in map[string]branch
	// caught are the nodes at which the run goes on after the newest failure that a node has caught.
	caught map[string]string
}

type passage struct {
	visits int
	state  State
	took   time.Duration
	// open is since when visits go on, by their number.
	open map[int]time.Time
	// items are how many visits after the number owner are those of the items of a map; the newest of them ended at itemEnded.
	owner, items int
	itemEnded    time.Time
}

func (n *passage) isItem(visit int) bool {
	return n != nil && visit > n.owner && visit <= n.owner+n.items
}

type step struct {
	from, to string
	failure  bool
}

// branch is zero for the run itself.
type branch struct{ parallel, name string }

// NewRun returns a Run of a program without records.
func NewRun(p *definition.Program) *Run {
	r := &Run{program: p, nodes: map[string]*passage{}, taken: map[step]bool{}, last: map[branch]string{}, in: map[string]branch{}, caught: map[string]string{}}
	size := map[string]int{}
	for _, n := range p.Nodes {
		if n.Parallel == nil {
			continue
		}
		for _, b := range n.Parallel.Branches {
			ids := nodesOf(p, b.Entry, n.Next)
			for _, id := range ids {
				if known, ok := size[id]; !ok || len(ids) < known {
					size[id], r.in[id] = len(ids), branch{n.ID, b.Name}
				}
			}
		}
	}
	return r
}

// nodesOf returns the nodes from one node on, up to where its branch is joined. A compensation is in no branch of its own.
func nodesOf(p *definition.Program, entry, join *definition.Node) []string {
	var ids []string
	seen := map[*definition.Node]bool{nil: true, join: true}
	for queue := []*definition.Node{entry}; len(queue) > 0; {
		n := queue[0]
		queue = queue[1:]
		if seen[n] {
			continue
		}
		seen[n] = true
		ids = append(ids, n.ID)
		for _, next := range p.Targets(n) {
			if n.Compensation == nil || next != n.Compensation.Node {
				queue = append(queue, next)
			}
		}
	}
	return ids
}

// Record takes the next record of the run.
func (r *Run) Record(rec *history.Record) {
	p, at := &rec.Payload, rec.CreatedAt
	visit := max(p.Visit, 1)
	switch rec.Name {
	case history.NodeScheduled:
		r.begin(p, visit, at)
	case history.MapStarted:
		if n := r.nodes[p.NodeID]; n != nil {
			count, _ := p.Items.Value.(float64)
			n.owner, n.items = visit, int(count)
		}
	case history.ActivityCompleted, history.SignalReceived:
		r.end(p.NodeID, visit, Done, at)
	case history.ActivityFailed:
		if !p.WillRetry {
			r.end(p.NodeID, visit, Failed, at)
		}
	case history.InterruptResumed:
		if n := r.program.Node(p.NodeID); n != nil && n.Interrupt != nil { // not a question of an agent, which works on
			r.end(p.NodeID, visit, Done, at)
		}
	case history.TimerFired:
		if p.TimerKind != "deadline" {
			r.end(p.NodeID, visit, Done, at)
		} else {
			r.end(p.NodeID, visit, Failed, at)
		}
	case history.SubworkflowCompleted:
		if p.Failed {
			r.end(p.NodeID, visit, Failed, at)
		} else {
			r.end(p.NodeID, visit, Done, at)
		}
	case history.CompleteNode:
		r.scripted(p.NodeID, Done, at)
	case history.FailNode:
		r.fail(p, at)
	case history.ParallelBranchCancelled:
		r.stop(branch{p.NodeID, p.BranchName}, at)
	case history.ParallelJoined:
		r.join(p.NodeID)
	case history.CancelExecution, history.ExecutionCompleted, history.ExecutionFailed, history.ExecutionCancelled:
		r.stop(branch{}, at) // a rollback may come between a cancel and its end
	}
}

// begin takes a new visit.
func (r *Run) begin(p *history.Payload, visit int, at time.Time) {
	n := r.nodes[p.NodeID]
	if n.isItem(visit) {
		return
	}
	if n == nil {
		n = &passage{open: map[int]time.Time{}}
		r.nodes[p.NodeID] = n
	}
	delete(r.caught, p.NodeID)
	n.visits++
	n.state, n.open[visit] = Now, at
	if undone, _, ok := strings.Cut(p.Compensates, "#"); ok {
		r.taken[step{undone, p.NodeID, true}] = true // the run goes on from the node that failed
		return
	}
	in := r.in[p.NodeID]
	from, ok := r.last[in]
	if !ok {
		from = in.parallel
	}
	if before := r.nodes[from]; before != nil {
		r.taken[step{from, p.NodeID, before.state == Failed}] = true
	}
	r.last[in] = p.NodeID
	if d := r.program.Node(p.NodeID); d != nil {
		switch d.Type {
		case definition.Parallel:
			for b := range r.last { // of the visit before
				if b.parallel == d.ID {
					delete(r.last, b)
				}
			}
		case definition.Start, definition.SetState, definition.Switch, definition.End: // at once
			r.end(p.NodeID, visit, Done, at)
		}
	}
}

// end ends a visit, if it goes on.
func (r *Run) end(id string, visit int, s State, at time.Time) {
	n := r.nodes[id]
	if n.isItem(visit) {
		n.itemEnded = at
		return
	}
	if n == nil || n.open[visit].IsZero() {
		return
	}
	n.state = s
	n.took += max(at.Sub(n.open[visit]), 0)
	delete(n.open, visit)
	if d := r.program.Node(id); s == Failed && d != nil && d.Parallel != nil {
		for _, b := range d.Parallel.Branches {
			r.stop(branch{id, b.Name}, at)
		}
	}
}

// fail lets a node fail, and the blocks around it that need all their branches, up to the one that catches the failure.
func (r *Run) fail(p *history.Payload, at time.Time) {
	id := cmp.Or(p.NodeID, p.FailedNodeID)
	r.scripted(id, Failed, at)
	for by := r.in[id]; id != p.CaughtBy && by.parallel != ""; by = r.in[id] {
		id = by.parallel
		if d := r.program.Node(id); d == nil || d.Parallel.Join != definition.JoinAll {
			return
		}
		r.scripted(id, Failed, at)
	}
	if p.CaughtBy == "" {
		return
	}
	r.caught[p.CaughtBy] = p.Target
	if r.taken[step{from: p.CaughtBy, to: p.Target}] { // a branch that is held back has gone on before
		r.taken[step{p.CaughtBy, p.Target, true}] = true
	}
}

// scripted ends the oldest visit of a node that no fact has ended, or lets the newest one fail.
func (r *Run) scripted(id string, s State, at time.Time) {
	n := r.nodes[id]
	switch {
	case n == nil:
	case len(n.open) > 0:
		if n.items > 0 && !n.itemEnded.IsZero() {
			at = n.itemEnded
		}
		r.end(id, slices.Min(slices.Collect(maps.Keys(n.open))), s, at)
	case s == Failed:
		n.state = s // its outcome could not be used
	}
}

// stop ends the nodes in which a branch, or with the zero branch the whole run, still is.
func (r *Run) stop(b branch, at time.Time) {
	for id, n := range r.nodes {
		if r.within(id, b) {
			for visit := range n.open {
				r.end(id, visit, Stopped, at)
			}
		}
	}
}

// within reports whether a node is in a branch, or in one below it.
func (r *Run) within(id string, b branch) bool {
	for in := r.in[id]; in != b; in = r.in[in.parallel] {
		if in == (branch{}) {
			return false
		}
	}
	return true
}

// join ends the branches of a parallel node: those that completed lead to the node after it.
func (r *Run) join(parallel string) {
	p := r.program.Node(parallel)
	for in, last := range r.last {
		if p == nil || in.parallel != parallel {
			continue
		}
		if n := r.nodes[last]; p.Next != nil && n != nil && (n.state == Done || r.caught[last] == p.Next.ID) {
			r.taken[step{last, p.Next.ID, n.state == Failed}] = true
		}
		delete(r.last, in)
	}
}

func (r *Run) took(from, to string, failure bool) bool {
	return r != nil && r.taken[step{from, to, failure}]
}

func (r *Run) state(id string) State {
	if r == nil || r.nodes[id] == nil {
		return ""
	}
	return r.nodes[id].state
}

// facts says in a few words what became of a node, "" if it was not visited.
func (r *Run) facts(id string) string {
	if r == nil || r.nodes[id] == nil {
		return ""
	}
	n := r.nodes[id]
	text := string(n.state)
	if n.visits > 1 {
		text += fmt.Sprintf(", %d visits", n.visits)
	}
	if n.state != Now || n.visits > 1 {
		text += ", " + Elapsed(n.took)
	}
	return text
}
