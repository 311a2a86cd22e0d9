package picture

import (
	"fmt"
	"strings"
	"time"

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
type Run struct {
	nodes map[string]*passage
	taken map[step]bool
	// last is the newest node of the run itself, and of each branch that has not been joined.
	last map[branch]string
	// after are the nodes at which branches are joined, by their parallel node.
	after map[string]string
}

type passage struct {
	visits int
	state  State
	took   time.Duration
	since  time.Time
	branch branch
}

type step struct {
	from, to string
	failure  bool
}

// branch is zero for the run itself.
type branch struct{ parallel, name string }

// NewRun returns a Run without records.
func NewRun() *Run {
	return &Run{nodes: map[string]*passage{}, taken: map[step]bool{}, last: map[branch]string{}, after: map[string]string{}}
}

// Record takes the next record of the run.
func (r *Run) Record(rec *history.Record) {
	p := &rec.Payload
	var in branch
	if p.Span != nil {
		in = branch{p.Span.ParallelNodeID, p.Span.BranchName}
		r.after[in.parallel] = p.Span.JoinTargetID
	}
	switch rec.Name {
	case history.ScheduleNode:
		from, ok := r.last[in]
		if !ok {
			from = in.parallel
		}
		r.follow(from, p.NodeID)
		r.last[in] = p.NodeID
		n := r.nodes[p.NodeID]
		if n == nil {
			n = &passage{}
			r.nodes[p.NodeID] = n
		}
		n.visits++
		n.state, n.since, n.branch = Now, rec.CreatedAt, in
	case history.CompleteNode:
		r.end(p.NodeID, Done, rec.CreatedAt)
	case history.FailNode:
		r.end(p.NodeID, Failed, rec.CreatedAt)
		if p.CaughtBy != "" { // compensations may come in between
			r.taken[step{p.CaughtBy, p.Target, true}] = true
		}
	case history.NodeScheduled:
		if undone, _, ok := strings.Cut(p.Compensates, "#"); ok {
			r.taken[step{undone, p.NodeID, true}] = true
		}
	case history.ParallelBranchCancelled:
		r.stop(branch{p.NodeID, p.BranchName}, rec.CreatedAt)
	case history.ParallelJoined:
		r.join(p.NodeID)
	case history.ExecutionCompleted, history.ExecutionFailed, history.ExecutionCancelled:
		r.stop(branch{}, rec.CreatedAt)
	}
}

// follow notes the edge between two nodes. It is that of a caught failure if the first has failed.
func (r *Run) follow(from, to string) {
	if n := r.nodes[from]; n != nil {
		r.taken[step{from, to, n.state == Failed}] = true
	}
}

func (r *Run) end(id string, s State, at time.Time) {
	if n := r.nodes[id]; n != nil && n.state == Now {
		n.state = s
		n.took += max(at.Sub(n.since), 0)
	}
}

// stop ends the nodes in which a branch, or with the zero branch the whole run, still is.
func (r *Run) stop(in branch, at time.Time) {
	for id, n := range r.nodes {
		if in == (branch{}) || n.branch == in {
			r.end(id, Stopped, at)
		}
	}
}

// join ends the branches of a parallel node: those that completed lead to the node after it.
func (r *Run) join(parallel string) {
	for in, last := range r.last {
		if in.parallel != parallel || parallel == "" {
			continue
		}
		if n := r.nodes[last]; n != nil && n.state == Done {
			r.taken[step{from: last, to: r.after[parallel]}] = true
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
