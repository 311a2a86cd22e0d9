package timeline

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Events are recorded when they happen, with the number of their visit. Commands are the script, which reaches a branch only after the
// branches before it: they have no number, and belong to the oldest visit of their node that the script has not ended.

// Record adds the next record of a run and returns its place.
func (t *Timeline) Record(executionID string, rec *history.Record) Place {
	r := t.run(executionID)
	at := Place{Run: r, Visit: t.visitOf(r, rec)}
	if v := at.Visit; v != nil {
		if rec.Kind != history.Command {
			r.move(v, &rec.Payload)
		}
		if rec.Name != history.NodeScheduled {
			t.visit(r, v, rec, &at)
		}
	} else {
		r.own(t, rec)
	}
	if rec.Kind == history.Command {
		r.lastScript = at.Visit
	}
	return at
}

// visitOf returns the visit of a record, which NodeScheduled starts. It is nil for a record of the run itself.
func (t *Timeline) visitOf(r *Run, rec *history.Record) *Visit {
	p := &rec.Payload
	node := p.NodeID
	switch rec.Name {
	case history.NodeScheduled:
		return r.start(p, rec)
	case history.ScheduleNode, history.CancelExecution, history.ExecutionStarted, history.ExecutionCompleted, history.ExecutionFailed,
		history.ExecutionCancelled, history.SignalKept:
		return nil
	case history.ParallelBranchCancelled, history.CancelParallelBranch:
		if block := r.openBlock(node); block != nil {
			return block
		}
	case history.StateUpdated, history.CheckpointWritten:
		if node == "" || r.lastScript != nil && r.lastScript.Node == node {
			return r.lastScript
		}
		return cmp.Or(r.scripted(node), r.latest[node])
	case history.FailNode:
		node = cmp.Or(node, p.FailedNodeID)
	}
	if node == "" {
		return nil
	}
	if rec.Kind == history.Command && p.Visit == 0 {
		return r.scripted(node)
	}
	if v := r.visits[visitKey{node, max(p.Visit, 1)}]; v != nil || rec.Kind == history.Command {
		return v
	}
	v := r.start(&history.Payload{NodeID: node, Visit: p.Visit, Span: p.Span, BlockVisit: p.BlockVisit}, rec)
	v.Began = time.Time{} // its start is not among the records
	return v
}

// scripted returns the oldest visit of a node that the script has not ended, or nil.
func (r *Run) scripted(node string) *Visit {
	list := r.unscripted[node]
	for len(list) > 0 && list[0].scripted {
		list = list[1:]
	}
	r.unscripted[node] = list
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// own takes a record of the run itself.
func (r *Run) own(t *Timeline, rec *history.Record) {
	p, at := &rec.Payload, rec.CreatedAt
	switch rec.Name {
	case history.ExecutionStarted:
		r.Began, r.Name, r.Title = at, strings.TrimSpace(p.WorkflowName+" "+p.WorkflowVersion), p.Title
	case history.ExecutionCompleted:
		r.end("completed", "", rec)
	case history.ExecutionFailed:
		r.end("failed", t.short(p.Code+" "+p.Error), rec)
	case history.ExecutionCancelled:
		r.end("cancelled", t.short(p.Reason), rec)
	case history.CancelExecution:
		r.dropAll(rec) // a rollback may follow
	}
}

// start takes a new visit.
func (r *Run) start(p *history.Payload, rec *history.Record) *Visit {
	if !r.Ended.IsZero() {
		r.Ended, r.Status, r.Reason = time.Time{}, "", "" // a run of the reference engine may continue after a failure
	}
	v := &Visit{Node: p.NodeID, Number: max(p.Visit, 1), Seq: rec.Seq, Began: rec.CreatedAt, Compensates: p.Compensates}
	if r.Program != nil {
		v.Definition = r.Program.Node(p.NodeID)
	}
	r.place(v, p)
	r.Visits = append(r.Visits, v)
	r.visits[visitKey{v.Node, v.Number}] = v // the reference engine does not number visits: records then belong to the newest
	r.latest[v.Node] = v
	if !v.IsItem() {
		r.unscripted[v.Node] = append(r.unscripted[v.Node], v)
	}
	if from := v.From; from != nil && from != v.Block() {
		r.finish(from, Succeeded, rec)
		if from.Definition != nil && from.Definition.Switch != nil {
			from.Next = v.Node
		}
	}
	switch {
	case v.Definition != nil && v.Definition.Parallel != nil:
		r.forkDefined(v)
	case v.Definition != nil && v.Definition.Map != nil && v.Items == nil:
		r.openMap(v, unknownTotal) // in a branch the record with the number of items may come after the items
	case p.Queued:
		v.wait(&Wait{Kind: Queued}, rec)
	case v.Definition != nil && v.Items == nil && v.Definition.Type.Info().Instant:
		r.finish(v, Succeeded, rec) // in a branch its command may come later
	}
	return v
}

// unknownTotal is the number of items of a map before it is recorded.
const unknownTotal = -1

func (r *Run) openMap(v *Visit, total int) {
	switch {
	case v.Items == nil && v.Ended.IsZero():
		v.Items = &Items{Owner: v, Total: total}
		r.maps = append(r.maps, v)
	case v.Items != nil && v.Items.Owner == v:
		v.Items.Total = total
	}
}

// visit takes a record of a visit.
func (t *Timeline) visit(r *Run, v *Visit, rec *history.Record, place *Place) {
	p, at := &rec.Payload, rec.CreatedAt
	if p.AgentStep != nil {
		t.entry(v, rec, place)
		return
	}
	switch rec.Name {
	case history.CompleteNode:
		if v.Output == "" {
			t.output(v, p.Output)
		}
		v.endScript()
		r.finish(v, Succeeded, rec)
	case history.FailNode:
		t.fail(r, v, rec)
	case history.ActivityRequested:
		place.Attempt = v.request(rec)
		place.Wait = v.endWait(at)
		v.State = Working
	case history.ActivityCompleted, history.ActivityFailed:
		place.Attempt = t.outcome(r, v, rec)
		place.Wait = v.Wait()
	case history.TimerStarted:
		place.Wait = v.wait(&Wait{Kind: Sleeping, Due: p.DueAt}, rec)
	case history.TimerFired:
		place.Wait = v.Wait()
		if p.TimerKind == "deadline" { // the deadline of another wait, or of a block
			r.close(v, rec)
			v.Text = "" // the prompt; the failure follows
			r.finish(v, Failed, rec)
		} else {
			r.finish(v, Succeeded, rec)
		}
	case history.InterruptRaised:
		v.Text = t.short(p.Prompt)
		place.Wait = v.wait(&Wait{Kind: Asking}, rec)
	case history.InterruptResumed:
		place.Wait = t.answered(v, rec)
		if v.attempt != nil { // the question of an agent, which continues
			v.State, v.Text = Working, ""
			return
		}
		t.output(v, p.SignalPayload)
		r.finish(v, Succeeded, rec)
	case history.SignalWaitStarted:
		v.Text = p.SignalName
		place.Wait = v.wait(&Wait{Kind: Listening}, rec)
	case history.SignalReceived:
		place.Wait = t.answered(v, rec)
		t.output(v, p.SignalPayload)
		r.finish(v, Succeeded, rec)
	case history.ParallelForked:
		r.fork(v, p.Join, p.BranchNames)
	case history.ParallelJoined:
		r.close(v, rec)
		r.finish(v, Succeeded, rec)
	case history.ParallelBranchCancelled:
		for _, b := range v.Branches {
			if b.Name == p.BranchName {
				r.drop(b, rec)
			}
		}
	case history.MapStarted:
		n, _ := p.Items.Value.(float64)
		r.openMap(v, int(n))
		r.endMap(v.Items, rec)
	case history.SubworkflowStarted:
		if child := t.run(p.ChildExecutionID); child != t.root && child != r && child.Parent == nil {
			v.Child, child.Parent = child, v // once, so that runs make a tree whatever is recorded
		}
	case history.SubworkflowCompleted:
		if p.Failed {
			r.finish(v, Failed, rec)
		} else {
			r.finish(v, Succeeded, rec)
		}
	}
}

// request takes a request. The records of a task at an agent repeat it, and the request of another attempt drops the open one.
func (v *Visit) request(rec *history.Record) *Attempt {
	p, number := &rec.Payload, max(rec.Payload.Attempt, 1)
	if a := v.attempt; a != nil {
		if p.ExternalTask != "" || a.Number == number {
			return a
		}
		a.supersede(rec.Seq)
	}
	a := &Attempt{
		Visit: v, Number: number, NodeType: p.NodeType, AgentID: p.AgentID, Host: p.Mode == "host_mediated",
		Requested: rec.CreatedAt, RequestedSeq: rec.Seq,
	}
	if p.Span != nil {
		a.Branch = p.Span.BranchName
	}
	if a.NodeType == "" && v.Definition != nil {
		a.NodeType = string(v.Definition.Type)
	}
	if before := v.Attempt(); before != nil && before.Outcome == SentBack {
		a.Repairs = true
	}
	v.Attempts, v.attempt = append(v.Attempts, a), a
	return a
}

func (a *Attempt) supersede(seq int64) { a.EndedSeq, a.Outcome = seq, Superseded }

// outcome ends the open attempt. A replay of the reference engine repeats an outcome without an attempt.
func (t *Timeline) outcome(r *Run, v *Visit, rec *history.Record) *Attempt {
	p, at := &rec.Payload, rec.CreatedAt
	if p.Replayed {
		return nil
	}
	a := v.attempt
	if last := v.Attempt(); a == nil && last != nil && last.Outcome == Superseded {
		a = last // an outcome that is recorded counts
	}
	if a != nil {
		a.Ended, a.EndedSeq, a.Code, a.Error, a.Usage, a.Repair = at, rec.Seq, p.Code, p.Error, p.Usage, p.Repair
		switch {
		case rec.Name == history.ActivityCompleted:
			a.Outcome = Completed
		case p.Repair != nil:
			a.Outcome = SentBack
		case p.WillRetry:
			a.Outcome = Retried
		default:
			a.Outcome = Failure
		}
		v.attempt = nil
	}
	if rec.Name == history.ActivityCompleted {
		value, _ := p.Result.Value.(map[string]any)
		t.output(v, value)
		r.finish(v, Succeeded, rec)
		return a
	}
	v.Text = t.short(p.Code + " " + p.Error)
	if p.WillRetry {
		due := p.RetryAt
		if due.IsZero() {
			due = at
		}
		v.wait(&Wait{Kind: Retrying, Due: due}, rec)
	} else {
		r.finish(v, Failed, rec)
	}
	return a
}

// output keeps the beginning of an output.
func (t *Timeline) output(v *Visit, output map[string]any) {
	if len(output) > 0 {
		v.Output = t.short(string(jsonvalue.Canonical(output)))
	}
}

// wait starts a wait, and ends the one before.
func (v *Visit) wait(w *Wait, rec *history.Record) *Wait {
	v.endWait(rec.CreatedAt)
	if !v.Ended.IsZero() {
		return nil
	}
	w.Began = rec.CreatedAt
	v.State, v.Waits = w.Kind, append(v.Waits, w)
	return w
}

// endWait ends the open wait and returns it, or nil.
func (v *Visit) endWait(at time.Time) *Wait {
	w := v.Wait()
	if w != nil {
		w.Ended = at
	}
	return w
}

// answered ends the wait for an answer or a signal.
func (t *Timeline) answered(v *Visit, rec *history.Record) *Wait {
	w := v.endWait(rec.CreatedAt)
	if w != nil {
		w.By, w.Answer = rec.Payload.Actor, t.short(string(jsonvalue.Canonical(rec.Payload.SignalPayload)))
	}
	return w
}

// fail takes the failure of a visit in the script. It fails the blocks around it that need all branches, up to the one that catches it.
func (t *Timeline) fail(r *Run, v *Visit, rec *history.Record) {
	p := &rec.Payload
	v.endScript()
	r.close(v, rec)
	if v.Text == "" || v.State != Failed {
		v.Text = t.short(p.Code + " " + p.Message)
	}
	r.finish(v, Failed, rec)
	v.State = Failed // also of a visit whose output could not be used
	failed := v
	for failed.Node != p.CaughtBy {
		block := failed.Block()
		if block == nil || block.join != string(definition.JoinAll) && block.Node != p.CaughtBy {
			return
		}
		block.endScript()
		block.Text = v.Text
		r.close(block, rec)
		r.finish(block, Failed, rec)
		failed = block
	}
	failed.Next = p.Target
}

// close ends the branches of a block and the items of a map that have not ended.
func (r *Run) close(v *Visit, rec *history.Record) {
	for _, b := range v.Branches {
		if last := b.Last(); !b.Dropped && (last == nil || last.Ended.IsZero()) && !b.Empty() {
			r.drop(b, rec)
		}
	}
	r.blocks = slices.DeleteFunc(r.blocks, func(other *Visit) bool { return other == v })
	if i := v.Items; i != nil && i.Owner == v {
		for _, item := range slices.Clone(i.Open) {
			r.finish(item, Dropped, rec)
		}
		r.maps = slices.DeleteFunc(r.maps, func(other *Visit) bool { return other == v })
	}
}

// drop ends a branch that is not needed, with the blocks in it.
func (r *Run) drop(b *Branch, rec *history.Record) {
	b.Dropped = true
	for _, v := range slices.Backward(b.Visits) {
		if v.Ended.IsZero() {
			r.close(v, rec)
			r.finish(v, Dropped, rec)
		}
	}
}

// endScript notes that no more commands follow for a visit and for those in its branches. The commands of a dropped branch may follow its end.
func (v *Visit) endScript() {
	v.scripted = true
	for _, b := range v.Branches {
		for _, inner := range b.Visits {
			inner.endScript()
		}
	}
}

// finish ends a visit that has not ended.
func (r *Run) finish(v *Visit, how State, rec *history.Record) {
	if !v.Ended.IsZero() {
		return
	}
	v.endWait(rec.CreatedAt)
	v.Ended, v.State = rec.CreatedAt, how
	if v.attempt != nil {
		v.attempt.supersede(rec.Seq)
		v.attempt = nil
	}
	if how == Succeeded {
		v.Text = ""
	}
	if !v.IsItem() {
		return
	}
	i := v.Items
	i.Open = slices.DeleteFunc(i.Open, func(other *Visit) bool { return other == v })
	switch how {
	case Succeeded:
		i.Done++
	case Failed:
		i.Failed++
		i.Owner.Text = v.Text
	}
	r.endMap(i, rec)
}

// endMap ends a map when its items have ended, or too many have failed. In a branch the command for it may come later.
func (r *Run) endMap(i *Items, rec *history.Record) {
	if i == nil || i.Total == unknownTotal || i.Owner.Definition == nil || i.Owner.Definition.Map == nil {
		return
	}
	switch tolerated := i.Owner.Definition.Map.Tolerates(i.Total); {
	case i.Failed > tolerated:
		r.finish(i.Owner, Failed, rec)
		r.close(i.Owner, rec)
	case i.Done+i.Failed == i.Total:
		r.finish(i.Owner, Succeeded, rec)
	}
}

// end takes the end of the run.
func (r *Run) end(status, reason string, rec *history.Record) {
	r.dropAll(rec)
	r.Status, r.Reason, r.Ended = status, reason, rec.CreatedAt
}

// dropAll ends everything that has not ended.
func (r *Run) dropAll(rec *history.Record) {
	for _, list := range r.unscripted {
		for _, v := range list {
			r.close(v, rec)
			r.finish(v, Dropped, rec)
		}
	}
	clear(r.unscripted)
	r.blocks, r.maps = nil, nil
}
