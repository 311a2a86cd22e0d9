package runtree

import (
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentview"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Facts are recorded when they happen, with the number of their visit. Commands are recorded when the script comes to them, which in
// a parallel block is later, and without a number: they end the oldest visit of their node that the script has not ended.

func (t *Tree) record(r *run, rec *history.Record) *Visit {
	p, at := &rec.Payload, rec.CreatedAt
	switch rec.Name {
	case history.ExecutionStarted:
		r.began, r.name, r.title = at, strings.TrimSpace(p.WorkflowName+" "+p.WorkflowVersion), p.Title
		return nil
	case history.ExecutionCompleted:
		r.end("completed", "", at)
		return nil
	case history.ExecutionFailed:
		r.end("failed", t.short(p.Code+" "+p.Error), at)
		return nil
	case history.ExecutionCancelled:
		r.end("cancelled", t.short(p.Reason), at)
		return nil
	case history.CancelExecution:
		r.dropAll(at) // a rollback may follow
		return nil
	case history.NodeScheduled:
		return r.begin(p, at)
	case history.CompleteNode:
		return t.complete(r, p, at)
	case history.FailNode:
		return t.fail(r, p, at)
	case history.ParallelBranchCancelled:
		return r.cancelBranch(p, at)
	}
	if rec.Kind == history.Command {
		return nil
	}
	v := r.visit(p.NodeID, max(p.Visit, 1))
	if v != nil {
		r.move(v, p.Span)
		t.fact(r, v, rec)
	}
	return v
}

// begin takes a new visit.
func (r *run) begin(p *history.Payload, at time.Time) *Visit {
	if !r.ended.IsZero() {
		r.ended, r.status, r.why = time.Time{}, "", "" // a run of the reference engine may go on after a failure
	}
	v := &Visit{Node: p.NodeID, Number: max(p.Visit, 1), Began: at, undoes: p.Compensates}
	if r.program != nil {
		v.node = r.program.Node(p.NodeID)
	}
	if p.Queued {
		v.state = queued
	}
	r.place(v, p.Span)
	r.visits[v.Node] = append(r.visits[v.Node], v)
	if before := v.Previous(); before != nil {
		if before.Ended.IsZero() {
			r.finish(before, succeeds, at)
		}
		if before.node != nil && before.node.Switch != nil {
			before.Chosen = v.Node
		}
	}
	if v.node != nil && v.items == nil && instant(v.node) {
		r.finish(v, succeeds, at) // its end is recorded at once, or in a branch when the script comes to it
	}
	return v
}

// instant reports whether a node waits for nothing.
func instant(n *definition.Node) bool {
	switch n.Type {
	case definition.Start, definition.End, definition.SetState, definition.Switch:
		return true
	}
	return false
}

// visit finds an open visit.
func (r *run) visit(node string, number int) *Visit {
	for _, v := range r.visits[node] {
		if v.Number == number {
			return v
		}
	}
	return nil
}

// fact takes what happened to a visit.
func (t *Tree) fact(r *run, v *Visit, rec *history.Record) {
	p, at := &rec.Payload, rec.CreatedAt
	if p.AgentStep != nil {
		t.step(v, rec)
		return
	}
	switch rec.Name {
	case history.ActivityRequested:
		if n := max(p.Attempt, 1); n != v.Attempt {
			v.Attempt, v.steps, v.step, v.work = n, 0, "", nil
		}
		v.state, v.host, v.agent = works, p.Mode == "host_mediated", p.AgentID
	case history.ActivityCompleted:
		if p.Replayed {
			return
		}
		r.count(v, p.Usage)
		value, _ := p.Result.Value.(map[string]any)
		t.make(v, value)
		r.finish(v, succeeds, at)
	case history.ActivityFailed:
		r.count(v, p.Usage)
		r.failed++
		v.text = t.short(p.Code + " " + p.Error)
		if !p.WillRetry {
			r.finish(v, fails, at)
			return
		}
		if v.state, v.due = retries, p.RetryAt; v.due.IsZero() {
			v.due = at
		}
	case history.TimerStarted:
		v.state, v.due = timed, p.DueAt
	case history.TimerFired:
		if p.TimerKind != "deadline" { // which is that of another wait, and leads on or fails
			r.finish(v, succeeds, at)
		}
	case history.InterruptRaised:
		v.state, v.text = asks, t.short(p.Prompt)
	case history.InterruptResumed:
		if v.agent != "" {
			v.state, v.text = works, "" // the agent has its answer
			return
		}
		t.make(v, p.SignalPayload)
		r.finish(v, succeeds, at)
	case history.SignalWaitStarted:
		v.state, v.text = listens, p.SignalName
	case history.SignalReceived:
		t.make(v, p.SignalPayload)
		r.finish(v, succeeds, at)
	case history.ParallelForked:
		r.fork(v, p)
	case history.ParallelJoined:
		r.closeBranches(v, at)
		r.finish(v, succeeds, at)
	case history.MapStarted:
		n, _ := p.Items.Value.(float64)
		v.items = &items{owner: v, total: int(n)}
	case history.SubworkflowStarted:
		if child := t.run(p.ChildExecutionID); child != t.root && !child.below {
			v.child, child.below = child, true // once, so that runs make a tree whatever is recorded
		}
	case history.SubworkflowCompleted:
		if p.Failed {
			r.finish(v, fails, at)
		} else {
			r.finish(v, succeeds, at)
		}
	}
}

// step takes a step that the executor of an attempt has recorded: the attempt goes on, asks, or rests until a time.
func (t *Tree) step(v *Visit, rec *history.Record) {
	p := &rec.Payload
	key, kind, n, _ := p.Step()
	if v.steps = n; kind != "woken" { // which says no more than that the attempt goes on
		v.step = t.short(kind + " " + key)
	}
	if v.work == nil {
		v.work = &agentview.Work{}
	}
	v.work.Step(rec)
	v.Attempt, v.agent = max(p.Attempt, 1), p.AgentID
	switch {
	case rec.Name == history.InterruptRaised:
		v.state, v.text = asks, t.short(p.Prompt)
	case !p.DueAt.IsZero():
		v.state, v.due = rests, p.DueAt
	default:
		v.state, v.text, v.due = works, "", time.Time{}
	}
}

// maxText is how many characters are kept of a text, such as an error.
const maxText = 300

// short makes a text harmless before it is shortened, so that no part of what clean hides is left.
func (t *Tree) short(text string) string {
	return Line{Parts: []Part{{Text: strings.TrimSpace(t.clean(text))}}}.cut(maxText).Text()
}

// make keeps the beginning of an output.
func (t *Tree) make(v *Visit, output map[string]any) {
	if len(output) > 0 {
		v.made = t.short(string(jsonvalue.Canonical(output)))
	}
}

// count adds the tokens of an attempt.
func (r *run) count(v *Visit, usage map[string]any) {
	if in, out, ok := Tokens(usage); ok {
		v.in, v.out, v.counted = v.in+in, v.out+out, true
		r.in, r.out, r.counted = r.in+in, r.out+out, true
	}
	if micros, _ := usage["cost_micros"].(float64); micros > 0 && micros < 1<<53 {
		v.micros, r.micros = v.micros+int64(micros), r.micros+int64(micros)
	}
}

// Tokens returns what a provider counted for an attempt; ok is false if it counted nothing.
func Tokens(usage map[string]any) (in, out int64, ok bool) {
	prompt, isIn := usage["prompt_tokens"].(float64)
	completion, isOut := usage["completion_tokens"].(float64)
	return int64(prompt), int64(completion), isIn || isOut
}

// unscripted is the oldest visit of a node that the script has not ended.
func (r *run) unscripted(node string) *Visit {
	for _, v := range r.visits[node] {
		if i := v.items; !v.scripted && (i == nil || i.owner == v) {
			return v
		}
	}
	return nil
}

// complete takes the script's end of a visit.
func (t *Tree) complete(r *run, p *history.Payload, at time.Time) *Visit {
	v := r.unscripted(p.NodeID)
	if v == nil {
		return nil
	}
	if v.made == "" {
		t.make(v, p.Output)
	}
	v.scripted = true
	r.finish(v, succeeds, at)
	r.forget(v)
	return v
}

// fail takes the script's failure of a visit.
func (t *Tree) fail(r *run, p *history.Payload, at time.Time) *Visit {
	node := p.NodeID
	if node == "" {
		node = p.FailedNodeID
	}
	v := r.unscripted(node)
	if v == nil {
		return nil
	}
	v.scripted = true
	r.closeBranches(v, at)
	if v.text == "" || v.state != fails {
		v.text = t.short(p.Code + " " + p.Message)
	}
	if v.state = fails; v.Ended.IsZero() {
		r.finish(v, fails, at)
	}
	switch {
	case p.CaughtBy == v.Node:
		v.Chosen = p.Target
	case p.CaughtBy != "":
		if block := r.openBlock(p.CaughtBy); block != nil {
			block.Chosen, block.text = p.Target, v.text
			r.closeBranches(block, at)
			r.finish(block, fails, at)
		}
	}
	r.forget(v)
	return v
}

// cancelBranch takes that a branch is not needed any more.
func (r *run) cancelBranch(p *history.Payload, at time.Time) *Visit {
	block := r.openBlock(p.NodeID)
	if block == nil {
		return nil
	}
	for _, b := range block.branches {
		if b.name == p.BranchName {
			r.drop(b, at)
		}
	}
	return block
}

// closeBranches ends what still goes on in a block.
func (r *run) closeBranches(block *Visit, at time.Time) {
	for _, b := range block.branches {
		if last := b.last(); b.state != drops && (last == nil || last.Ended.IsZero()) && b.entry != nextOf(block) {
			r.drop(b, at)
		}
	}
	r.blocks = slices.DeleteFunc(r.blocks, func(other *Visit) bool { return other == block })
	if i := block.items; i != nil && i.owner == block {
		for _, v := range slices.Clone(i.open) {
			r.finish(v, drops, at)
		}
	}
}

func nextOf(v *Visit) string {
	if v.node == nil || v.node.Next == nil {
		return ""
	}
	return v.node.Next.ID
}

// drop ends a branch that is not needed, with all blocks in it.
func (r *run) drop(b *branch, at time.Time) {
	b.state, b.ended = drops, at
	if last := b.last(); last != nil && last.Ended.IsZero() {
		r.closeBranches(last, at)
		r.finish(last, drops, at)
		last.scripted = true
		r.forget(last)
	}
}

// finish ends a visit that goes on.
func (r *run) finish(v *Visit, how state, at time.Time) {
	if !v.Ended.IsZero() {
		return
	}
	v.Ended, v.state, v.due, v.work = at, how, time.Time{}, nil
	if how == succeeds {
		v.text = ""
	}
	if i := v.items; i != nil && i.owner != v {
		i.open = slices.DeleteFunc(i.open, func(other *Visit) bool { return other == v })
		switch how {
		case succeeds:
			i.done++
		case fails:
			i.failed++
			i.owner.text = v.text
		}
		v.scripted = true
		r.forget(v)
		return
	}
	if how == succeeds {
		r.done++
	}
	r.forget(v)
}

// forget lets go of a visit of which no more records come.
func (r *run) forget(v *Visit) {
	if v.Ended.IsZero() || !v.scripted {
		return
	}
	if left := slices.DeleteFunc(r.visits[v.Node], func(other *Visit) bool { return other == v }); len(left) > 0 {
		r.visits[v.Node] = left
	} else {
		delete(r.visits, v.Node)
	}
}

// end takes the end of the run.
func (r *run) end(status, why string, at time.Time) {
	r.status, r.why, r.ended = status, why, at
	r.dropAll(at)
}

// dropAll ends everything that goes on.
func (r *run) dropAll(at time.Time) {
	for _, open := range r.visits {
		for _, v := range slices.Clone(open) {
			r.closeBranches(v, at)
			r.finish(v, drops, at)
		}
	}
	clear(r.visits)
	r.blocks = nil
}
