package transfer

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// ForkedPast makes the first records of a run that begins with the past of another run.
type ForkedPast struct {
	// From is the run to fork, To the new run. Seq is the last record of From to copy.
	From, To string
	Seq      int64
	// BeforeNode, instead of Seq, ends the past before the newest visit of this node. If a rollback has undone visits, the past ends
	// before the first of them.
	BeforeNode string
	// Correction, with BeforeNode, is a JSON merge patch of the state where the new run continues; nil keeps the state.
	Correction map[string]any
	// Retry, instead of Seq and BeforeNode, begins the new run where the other run failed. Changed is set if it follows another
	// definition.
	Retry   *Retry
	Changed bool
	// Parent and Depth are set if the new run is a subworkflow; "" and 0 if no run waits for it.
	Parent string
	Depth  int
	// Below, for a retry, returns how a subworkflow of the other run continues when the new run waits for it again.
	Below func(child string) (Continuation, error)
	// MaxStateBytes limits a corrected state, as canonical JSON.
	MaxStateBytes int
	// Program is the program of the new run. The copied records must follow from it.
	Program *definition.Program
	// Own is the program of the other run; nil if it is Program.
	Own       *definition.Program
	MaxVisits int
	// Subworkflows holds the versions of the subworkflows that the new run may start.
	Subworkflows map[string]string
	// Now is the time of the end of the new run's past, in whole milliseconds.
	Now time.Time
	// Actor is the actor of the fork; nil if unknown. The actors of copied answers, signals and outcomes stay.
	Actor *history.Actor
}

// Continuation describes how a subworkflow continues in a retry of its parent.
type Continuation struct {
	// Exists reports whether the subworkflow was started.
	Exists bool
	// Seq is the last record that the new subworkflow copies; 0 to restart it, because it has no steps of agents.
	Seq int64
}

// Past returns the first records of the new run, and its machine after them. records are all records of the other run; their times are
// moved so that the past ends at Now. It fails with VALIDATION_ERROR if the other run has no record Seq, and with
// NONDETERMINISM_DETECTED if the past does not follow from the program.
func (f *ForkedPast) Past(records []history.Record) ([]history.Record, *machine.Machine, error) {
	if f.Retry != nil {
		if err := f.retried(records); err != nil {
			return nil, nil, err
		}
	}
	if f.BeforeNode != "" {
		if f.Correction == nil { // a map sees the state as it was when it began
			f.Seq = beforeItem(records, f.BeforeNode)
		}
		if f.Seq == 0 {
			f.Seq = beforeNode(records, f.BeforeNode)
		}
		if f.Seq == 0 {
			return nil, nil, problem.New(problem.ValidationError, "run %q has not visited node %q", f.From, f.BeforeNode).
				WithPlace(problem.Place{ExecutionID: f.From, NodeID: f.BeforeNode}).WithHint("Choose a node from the history of the run.")
		}
	}
	if f.Seq < 1 || f.Seq > int64(len(records)) {
		return nil, nil, problem.New(problem.ValidationError, "run %q has no record %d", f.From, f.Seq).
			WithPlace(problem.Place{ExecutionID: f.From}).
			WithHint("Choose a record from 1 to %d.", len(records))
	}
	if f.BeforeNode != "" {
		if err := f.beforeUndone(records); err != nil {
			return nil, nil, err
		}
	}
	past, m, err := f.past(records)
	if errors.Is(err, problem.Nondeterminism) {
		err = problem.New(problem.Nondeterminism, "run %q cannot be forked at record %d: %v", f.From, f.Seq, err).
			WithPlace(problem.Place{ExecutionID: f.From}).WithHint("%sFork it at a record before the difference; nothing was written.", library.OtherWorkflow(f.Program, records[0].Payload.WorkflowName))
	}
	return past, m, err
}

// beforeNode returns the seq of the last record before the newest visit of a node, or 0 if the node was not visited. In a parallel
// branch, the command of a visit is written only when the earlier branches have ended, but its outcome is written at once. The past
// ends before both, because a copied outcome would be repeated.
func beforeNode(records []history.Record, node string) int64 {
	scheduled, visits := int64(0), 0
	mapped := 0                   // visits that have begun a map
	visit, outcome := 0, int64(0) // newest visit with an outcome, and its first outcome
	for i := range records {
		r := &records[i]
		switch p := &r.Payload; {
		case p.NodeID != node:
		case r.Kind == history.Command && r.Name == history.ScheduleNode:
			scheduled = r.Seq
			visits++
		case r.Name == history.MapStarted:
			mapped++
		case machine.IsOutcome(r.Name) && !p.Replayed && max(p.Visit, 1) > visit:
			visit, outcome = max(p.Visit, 1), r.Seq
		}
	}
	if mapped > 0 && visits >= mapped { // items have their own visits
		return scheduled - 1
	}
	if visit >= visits && outcome > 0 && (visit > visits || outcome < scheduled) {
		return outcome - 1
	}
	return max(scheduled-1, 0)
}

// beforeItem returns the seq of the last record before the first failure of an item in the newest map at a node; earlier outcomes of
// items are kept. It returns 0 if the node has no map, or no item failed.
func beforeItem(records []history.Record, node string) int64 {
	visit, next := 0, 1 // newest map, and the next one; each item has its own visit
	for i := range records {
		if p := &records[i].Payload; records[i].Name == history.MapStarted && p.NodeID == node {
			items, _ := p.Items.Value.(float64)
			visit, next = next, next+1+int(items)
		}
	}
	for i := range records {
		r := &records[i]
		failed := r.Name == history.ActivityFailed && !r.Payload.WillRetry || r.Name == history.SubworkflowCompleted && r.Payload.Failed
		if failed && visit > 0 && r.Payload.NodeID == node && r.Payload.Visit > visit {
			return r.Seq - 1
		}
	}
	return 0
}

func (f *ForkedPast) past(records []history.Record) ([]history.Record, *machine.Machine, error) {
	n := WithoutFailure(records, WithoutEnd(records, int(f.Seq)))
	if r := &records[n-1]; n > 1 && r.Name == history.TimerFired && r.Payload.NodeID == "" && !r.Foreign {
		n-- // the deadline of the run, which the new run has not reached
	}
	// The past is proved with its own times, because a definition may read the clock.
	if _, err := Prove(f.Program, f.From, records[:n], InputOf(records), f.MaxVisits, records[n-1].CreatedAt); err != nil {
		return nil, nil, err
	}
	past, err := f.rewritten(records, n)
	if err != nil {
		return nil, nil, err
	}
	past = f.goOn(past, records)
	if err := f.continueBelow(past); err != nil {
		return nil, nil, err
	}
	m, _, moved, err := Replay(f.Program, f.To, past, nil, f.MaxVisits, f.Now)
	if err != nil {
		return nil, nil, err
	}
	for i := range moved {
		moved[i].SetDerived(&past[moved[i].Seq-1].Payload)
	}
	if f.Correction != nil {
		if past, err = f.corrected(past); err != nil {
			return nil, nil, err
		}
		if m, _, _, err = Replay(f.Program, f.To, past, nil, f.MaxVisits, f.Now); err != nil {
			return nil, nil, err
		}
	}
	for _, rest := range m.BeginFork(f.Now, f.continuing(past)) {
		rest.Seq = int64(len(past) + 1)
		past = append(past, rest)
	}
	return past, m, nil
}

// rewritten returns the first n records of the other run, with the new id and moved times.
func (f *ForkedPast) rewritten(all []history.Record, n int) ([]history.Record, error) {
	out := make([]history.Record, n)
	shift := f.shiftOf(all, n)
	visits := map[string]int{}
	for i := range out {
		r := all[i]
		if r.Foreign && all[0].Payload.Branches != "" {
			adopt(&r, all[i:n], visits[r.Payload.NodeID], all[0].Payload.Mode)
		}
		if r.Kind == history.Command && r.Name == history.ScheduleNode {
			visits[r.Payload.NodeID]++
		}
		r.Raw, r.Foreign = nil, false
		if r.CreatedAt = r.CreatedAt.Add(shift); r.CreatedAt.After(f.Now) {
			r.CreatedAt = f.Now
		}
		f.rewrite(&r.Payload, r.Name, shift)
		out[i] = r
	}
	f.limit(&out[0].Payload, &all[0])
	p := &out[0].Payload
	if out[0].Name != history.ExecutionStarted {
		return nil, problem.New(problem.HistoryCorrupt, "the first record is %s", out[0].Name).WithPlace(problem.Place{ExecutionID: f.From})
	}
	input := InputOf(all)
	if p.Input == nil && input != nil && !slices.ContainsFunc(out, isState) {
		p.Input = maps.Clone(input) // the first state, which is the input, is not copied
	}
	return withoutOpenTasks(out), nil
}

// adopt adds the fields that this engine would have recorded to a record of another engine, so that the copy counts as written here.
// from holds this record and all later ones.
func adopt(r *history.Record, from []history.Record, visit int, mode string) {
	p := &r.Payload
	if r.Kind == history.Event && p.Visit == 0 && visit > 1 {
		p.Visit = visit
	}
	switch {
	case r.Name == history.ActivityRequested && p.Mode == "" && mode == string(machine.HostMediated):
		p.Mode = mode
	case r.Name == history.InterruptResumed && p.SignalPayload == nil:
		for _, next := range from {
			if next.Name == history.CompleteNode && next.Payload.NodeID == p.NodeID {
				p.SignalPayload = next.Payload.Output
				return
			}
		}
	}
}

// rewrite changes a payload into a payload of the new run. It may change the payload, but not the values in it.
func (f *ForkedPast) rewrite(p *history.Payload, name history.Name, shift time.Duration) {
	for _, id := range []*string{&p.ChildExecutionID, &p.ParentExecutionID, &p.IdempotencyKey, &p.Correlation} {
		*id = f.own(*id)
	}
	for _, at := range []*time.Time{&p.DueAt, &p.RetryAt, &p.DeadlineAt} {
		if !at.IsZero() && p.TimerKind != "until" { // an instant is not moved
			*at = at.Add(shift)
		}
	}
	p.AgentStep = machine.MovedStep(p.AgentStep, shift)
	if p.DefinitionHash != "" {
		p.DefinitionHash = f.Program.Hash
	}
	if p.WorkflowVersion != "" {
		p.WorkflowVersion = f.Program.Version
	}
	if name == history.ExecutionStarted {
		p.WorkflowName, p.WorkflowVersion = f.Program.Name, f.Program.Version
		p.ParentExecutionID, p.Depth = f.Parent, f.Depth
		p.Subworkflows = f.Subworkflows
		p.ForkedFrom = history.ForkOrigin{ExecutionID: f.From, Seq: f.Seq}
		p.Actor, p.ImportedBy, p.ImportedAt = f.Actor, nil, time.Time{}
	}
}

// limit gives a run whose deadline has passed the whole time again; p is the copy of its first record. Any other run keeps the rest.
func (f *ForkedPast) limit(p *history.Payload, started *history.Record) {
	if p.DeadlineAt.IsZero() || p.DeadlineAt.After(f.Now) && (f.Retry == nil || f.Retry.Code != string(problem.RunTimeout)) {
		return
	}
	whole := started.Payload.DeadlineAt.Sub(started.CreatedAt)
	if f.Changed && f.Program.Deadline > 0 {
		whole = f.Program.Deadline
	}
	p.DeadlineAt = f.Now.Add(whole)
}

// own replaces the other run's id by the new id at the beginning of an id.
func (f *ForkedPast) own(id string) string {
	rest, ok := strings.CutPrefix(id, f.From)
	if !ok || rest != "" && rest[0] != ':' {
		return id
	}
	return f.To + rest
}

// withoutOpenTasks removes the records of remote tasks whose attempts have not ended. Such a task belongs to the other run: an answer
// or a cancel by the new run would affect both.
func withoutOpenTasks(records []history.Record) []history.Record {
	type visit struct {
		node string
		n    int
	}
	ended := map[visit]bool{}
	open := make([]bool, len(records))
	for i, r := range slices.Backward(records) {
		at := visit{r.Payload.NodeID, max(r.Payload.Visit, 1)}
		switch r.Name {
		case history.ActivityCompleted, history.ActivityFailed:
			ended[at] = true
		case history.ActivityRequested, history.InterruptRaised, history.InterruptResumed:
			open[i] = r.Payload.ExternalTask != "" && !ended[at]
		}
	}
	return dropped(records, func(i int) bool { return open[i] })
}

// dropped returns records without those that drop selects.
func dropped(records []history.Record, drop func(i int) bool) []history.Record {
	kept := make([]history.Record, 0, len(records))
	for i, r := range records {
		if drop(i) {
			continue
		}
		gone := int64(i - len(kept)) // records removed before this one
		r.Seq -= gone
		if r.Name == history.CheckpointWritten {
			r.Payload.LastAppliedEventSeq -= gone
		}
		kept = append(kept, r)
	}
	return kept
}
