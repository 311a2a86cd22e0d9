package history

import (
	"cmp"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Project returns the projection of a run's whole history.
func Project(executionID string, records []Record) Execution {
	e := Execution{ID: executionID}
	for i := range records {
		e.Apply(records[i])
	}
	return e
}

// Apply advances the projection by the next record of the run. A Seq of 0 counts as the next.
//
// The rules are those of the protocol (spec: execution, 11.1 and 11.2) with these differences. A resumed interrupt has ended. A failure
// followed by commands was tolerated by a join. The waits are derived from all open requests, not only from the newest record. While a
// process of this engine performs an activity, the run is running. Requests of the reference engine do not name a performer, so the run
// awaits the activity.
func (e *Execution) Apply(r Record) {
	e.ApplyAll([]Record{r})
}

// ApplyAll applies several records, as repeated calls of Apply do.
func (e *Execution) ApplyAll(records []Record) {
	if len(records) == 0 {
		return
	}
	for i := range records {
		e.apply(&records[i])
	}
	e.fold.own, e.fold.nodes = false, nil
	e.settle()
}

// apply allows the next record to change the waits in place.
func (e *Execution) apply(r *Record) {
	e.Seq++
	if r.Seq != 0 {
		e.Seq = r.Seq
	}
	f, p := &e.fold, &r.Payload
	first := e.CreatedAt.IsZero()
	if first {
		e.CreatedAt = r.CreatedAt
	}
	e.UpdatedAt = r.CreatedAt
	if p.NodeID != "" {
		f.lastNode = p.NodeID
	}
	if r.Kind == Command {
		e.command(r.Name, p)
	} else {
		e.event(r.Name, p, r.Foreign)
	}
	if first {
		e.nameFamily()
	}
}

func (e *Execution) command(name Name, p *Payload) {
	f := &e.fold
	if f.outcome == PhaseFailed {
		f.outcome, e.LastError = "", ""
	}
	f.raised = name == RaiseInterrupt
	switch name {
	case ScheduleNode:
		e.NodeVisits++
	case StartParallel:
		f.openFork(p)
	case JoinParallel:
		f.closeForks(f.forkOf(p.NodeID))
	case CancelParallelBranch:
		f.closeForks(f.forkOf(p.NodeID) + 1) // of blocks within the branch
	case FailNode:
		if p.FailedNodeID != "" {
			f.lastNode = p.FailedNodeID
		}
		f.endWait(p, WaitSubworkflow, WaitBackoff)
		f.dropWaits(func(w *Wait) bool {
			return w.Queued && w.NodeID == f.lastNode && (p.Visit == 0 || max(w.Visit, 1) == p.Visit)
		})
		f.failBlocks(cmp.Or(p.NodeID, p.FailedNodeID), p.CaughtBy)
	case StartSubworkflow:
		e.ChildExecutionID, e.ChildParentID = p.ChildExecutionID, e.ID
	}
}

func (e *Execution) event(name Name, p *Payload, foreign bool) {
	f := &e.fold
	switch name {
	case ExecutionStarted:
		e.start(p)
	case CheckpointWritten:
		if p.DefinitionHash != "" && !f.bound {
			e.DefinitionHash = p.DefinitionHash
		}
	case StateUpdated:
		e.StateSeq = e.Seq
	case NodeScheduled:
		if p.Queued {
			f.beginWait(p, Wait{Kind: WaitActivity, Mode: modeInProc, Queued: true})
		}
	case ActivityRequested:
		e.requested(p, foreign)
	case ActivityCompleted:
		e.correlate(p)
		if !p.Replayed {
			f.endWait(p, WaitActivity, WaitBackoff, WaitInterrupt)
		}
	case ActivityFailed:
		e.attemptFailed(p)
	case InterruptRaised:
		if p.ExternalTask != "" {
			e.taskMoved(p, WaitInterrupt)
			return
		}
		if p.AgentStep != nil {
			e.stepRecorded(p, WaitInterrupt)
			return
		}
		// A replay of the reference engine repeats the event, without its command, for interrupts that have ended. Interrupts in branches are
		// always from this engine, which may hold their commands back.
		if f.raised || e.NodeVisits == 0 || p.Span != nil {
			f.beginWait(p, Wait{Kind: WaitInterrupt, Prompt: problem.ClipRunes(p.Prompt, maxWaitPrompt)})
		}
	case InterruptResumed:
		if p.ExternalTask != "" {
			e.taskMoved(p, WaitActivity)
			return
		}
		if p.AgentStep != nil {
			e.stepRecorded(p, WaitActivity)
			return
		}
		f.endWait(p, WaitInterrupt)
	case SignalWaitStarted:
		f.beginWait(p, Wait{Kind: WaitSignal, SignalName: p.SignalName})
	case SignalReceived:
		f.endWait(p, WaitSignal)
	case TimerStarted:
		f.beginWait(p, Wait{Kind: WaitTimer, Due: p.DueAt})
	case TimerFired: // of an interrupt or a signal: its deadline
		f.endWait(p, WaitTimer, WaitInterrupt, WaitSignal)
	case SubworkflowStarted:
		e.relate(p)
		f.beginWait(p, Wait{Kind: WaitSubworkflow, ChildExecutionID: p.ChildExecutionID})
	case SubworkflowCompleted:
		e.relate(p)
		if !p.Replayed {
			f.endWait(p, WaitSubworkflow)
		}
	case RollbackStarted:
		if p.Reason != rollbackOfCatch { // of the whole run: no branch continues
			f.waits, f.forks, f.nodes = nil, nil, nil
		}
	case ParallelBranchCancelled:
		f.dropWaits(func(w *Wait) bool {
			return w.within(p.NodeID, p.Visit) && w.Span.BranchName == p.BranchName
		})
	case ExecutionCompleted:
		e.end(PhaseCompleted, "")
	case ExecutionCancelled:
		e.end(PhaseCancelled, p.Reason)
	case ExecutionFailed:
		f.outcome, e.LastError = PhaseFailed, p.Error
	}
}

func (e *Execution) start(p *Payload) {
	f := &e.fold
	if f.started {
		return
	}
	f.started = true
	if strings.TrimSpace(p.WorkflowName) != "" {
		e.DefinitionName = p.WorkflowName
	}
	e.DefinitionVersion, e.InputHash, e.Mode = p.WorkflowVersion, p.InputHash, p.Mode
	e.Title, e.Labels, e.Notify, e.Subworkflows, e.Queue = p.Title, p.Labels, p.Notify, p.Subworkflows, p.Queue
	e.Parent, e.Depth, e.ForkedFrom = p.ParentExecutionID, p.Depth, p.ForkedFrom
	if p.DefinitionHash != "" {
		e.DefinitionHash, f.bound = p.DefinitionHash, true
	}
}

// requested opens the wait for an attempt. A repeated request of a delegate, or a request of a later attempt, may lack the agent's fields. A
// request of another engine does not name its performer; the mode of the run's start decides.
func (e *Execution) requested(p *Payload, foreign bool) {
	e.correlate(p)
	switch {
	case p.ExternalTask != "":
		e.taskMoved(p, WaitActivity)
		return
	case p.AgentStep != nil:
		e.stepRecorded(p, WaitActivity)
		return
	}
	f := &e.fold
	w := Wait{
		Kind: WaitActivity, NodeType: p.NodeType, Attempt: p.Attempt, Mode: p.Mode,
		AgentID: p.AgentID, Protocol: p.Protocol, Correlation: p.Correlation, Input: p.DelegateInput,
	}
	switch {
	case w.Mode != "" || e.Mode == "":
	case foreign:
		w.Mode = e.Mode
	default:
		w.Mode = modeInProc // requests of this engine name the other mode
	}
	if i := f.findWait(p, WaitActivity, WaitBackoff); i >= 0 && w.AgentID == "" {
		old := f.waits[i]
		w.AgentID, w.Protocol, w.Input = old.AgentID, old.Protocol, old.Input
		if w.NodeType == "" {
			w.NodeType = old.NodeType
		}
		if w.Correlation == "" {
			w.Correlation = old.Correlation
		}
	}
	f.beginWait(p, w, WaitBackoff)
}

// taskMoved applies a record of a delegate's task at its agent: the agent works on the task (ActivityRequested with the task's id), the agent
// asks a question (InterruptRaised), or the question was answered (InterruptResumed) and a process must deliver the answer.
func (e *Execution) taskMoved(p *Payload, kind WaitKind) {
	f := &e.fold
	i := f.findWait(p, WaitActivity, WaitInterrupt)
	if i < 0 {
		return
	}
	w := f.waits[i]
	w.Kind, w.ExternalTask, w.Prompt = kind, p.ExternalTask, problem.ClipRunes(p.Prompt, maxWaitPrompt)
	if p.SignalPayload != nil {
		w.ExternalTask = "" // a process delivers the answer
	}
	f.replaceWait(i, w)
}

// stepRecorded applies a journal entry of an attempt: its executor asks a question (InterruptRaised), gets the answer (InterruptResumed),
// rests until a time (ActivityRequested with that time), or continues.
func (e *Execution) stepRecorded(p *Payload, kind WaitKind) {
	f := &e.fold
	i := f.findWait(p, WaitActivity, WaitInterrupt, WaitTimer)
	if i < 0 {
		return
	}
	if w := f.waits[i]; w.Kind == WaitActivity && kind == WaitActivity && p.DueAt.IsZero() && !w.Queued {
		return // unchanged
	}
	w := f.waits[i]
	w.Kind, w.Due, w.Prompt, w.Queued = kind, p.DueAt, problem.ClipRunes(p.Prompt, maxWaitPrompt), p.SignalPayload != nil
	if kind == WaitActivity && !p.DueAt.IsZero() {
		w.Kind = WaitTimer
	}
	f.replaceWait(i, w)
}

// attemptFailed closes an attempt, and opens the wait for the next attempt, if any.
func (e *Execution) attemptFailed(p *Payload) {
	f := &e.fold
	i := f.findWait(p, WaitActivity, WaitBackoff)
	if i < 0 {
		i = f.findWait(p, WaitInterrupt, WaitTimer) // a question of an agent, or a rest: both belong to an attempt
		if i < 0 || f.waits[i].NodeType == "" {
			return
		}
	}
	if !p.WillRetry {
		f.endWait(p, f.waits[i].Kind)
		return
	}
	w := f.waits[i]
	w.Kind, w.Due, w.ExternalTask, w.Prompt, w.Queued = WaitBackoff, p.RetryAt, "", "", false
	f.replaceWait(i, w)
}

func (e *Execution) end(outcome Phase, reason string) {
	f := &e.fold
	f.outcome, e.LastError = outcome, reason
	f.waits, f.forks, f.nodes = nil, nil, nil
}

// correlate stores the newest delegate's correlation id.
func (e *Execution) correlate(p *Payload) {
	if p.Correlation != "" && (p.NodeType == nodeDelegate || p.NodeType == "") {
		e.DelegateCorrelationID = p.Correlation
	}
}

// relate stores the newest subworkflow's ids.
func (e *Execution) relate(p *Payload) {
	if p.ChildExecutionID != "" && p.ParentExecutionID != "" {
		e.ChildExecutionID, e.ChildParentID = p.ChildExecutionID, p.ParentExecutionID
	}
}

// ParentID returns the run that started this one as a subworkflow, "" for a root. The reference engine does not record the parent; for its
// runs ParentID derives it from the id.
func (e *Execution) ParentID() string {
	if e.Parent == "" && e.ChildExecutionID == e.ID {
		return e.ChildParentID
	}
	return e.Parent
}

// nameFamily sets ChildExecutionID and ChildParentID of a subworkflow that started no subworkflow: its own id and its parent's. The reference
// engine does not record the parent; for its runs the id determines it.
func (e *Execution) nameFamily() {
	if e.Parent != "" {
		e.ChildExecutionID, e.ChildParentID = e.ID, e.Parent
		return
	}
	if i := strings.LastIndex(e.ID, ":sub:"); i > 0 && e.Mode == "" {
		e.ChildExecutionID, e.ChildParentID = e.ID, e.ID[:i]
	}
}

// settle derives the fields that depend on the run's waits.
func (e *Execution) settle() {
	f := &e.fold
	e.Waits, e.CurrentNodeID = f.waits, f.lastNode
	e.SignalName, e.AgentID, e.Protocol, e.DelegateInput = "", "", "", nil
	if f.outcome != "" {
		e.Phase, e.Waits = f.outcome, nil
		if e.Phase == PhaseCompleted {
			e.CurrentNodeID = ""
		}
		return
	}
	w := f.deciding()
	switch {
	case w == nil || w.InProcess() || w.AtAgent():
		e.Phase = PhaseRunning
	case w.Kind == WaitInterrupt:
		e.Phase = PhaseInterrupted
	case w.Kind == WaitSignal:
		e.Phase, e.SignalName = PhaseAwaitingSignal, w.SignalName
	default:
		e.Phase = PhaseAwaitingActivity
	}
	if w == nil {
		return
	}
	if e.Phase != PhaseRunning {
		e.CurrentNodeID = w.NodeID
	}
	if w.Delegate() {
		e.AgentID, e.Protocol, e.DelegateInput = w.AgentID, w.Protocol, w.Input
	}
}

// deciding returns the wait that determines the phase: an activity that a process performs, else the first wait for a host, a person or a
// signal, else the first task at an agent; nil without such a wait.
func (f *fold) deciding() *Wait {
	var first, away *Wait
	for i := range f.waits {
		w := &f.waits[i]
		switch {
		case w.InProcess():
			return w
		case w.AtAgent():
			if away == nil {
				away = w
			}
		case first == nil && (w.Kind == WaitActivity || w.Kind == WaitInterrupt || w.Kind == WaitSignal):
			first = w
		}
	}
	if first == nil {
		return away
	}
	return first
}

// executionMembers, waitMembers and forkMembers list the fields of a stored projection in the order of writing.
var executionMembers = []jsonField[Execution]{
	{"seq", func(x *Execution) any { return &x.Seq }},
	{"name", func(x *Execution) any { return &x.DefinitionName }},
	{"version", func(x *Execution) any { return &x.DefinitionVersion }},
	{"hash", func(x *Execution) any { return &x.DefinitionHash }},
	{"inputHash", func(x *Execution) any { return &x.InputHash }},
	{"mode", func(x *Execution) any { return &x.Mode }},
	{"title", func(x *Execution) any { return &x.Title }},
	{"subworkflows", func(x *Execution) any { return &x.Subworkflows }},
	{"labels", func(x *Execution) any { return &x.Labels }},
	{"notify", func(x *Execution) any { return &x.Notify }},
	{"queue", func(x *Execution) any { return &x.Queue }},
	{"parent", func(x *Execution) any { return &x.Parent }},
	{"depth", func(x *Execution) any { return &x.Depth }},
	{"forkedId", func(x *Execution) any { return &x.ForkedFrom.ExecutionID }},
	{"forkedSeq", func(x *Execution) any { return &x.ForkedFrom.Seq }},
	{"created", func(x *Execution) any { return &x.CreatedAt }},
	{"updated", func(x *Execution) any { return &x.UpdatedAt }},
	{"outcome", func(x *Execution) any { return (*string)(&x.fold.outcome) }},
	{"error", func(x *Execution) any { return &x.LastError }},
	{"node", func(x *Execution) any { return &x.fold.lastNode }},
	{"visits", func(x *Execution) any { return &x.NodeVisits }},
	{"stateSeq", func(x *Execution) any { return &x.StateSeq }},
	{"correlation", func(x *Execution) any { return &x.DelegateCorrelationID }},
	{"childId", func(x *Execution) any { return &x.ChildExecutionID }},
	{"parentId", func(x *Execution) any { return &x.ChildParentID }},
	{"started", func(x *Execution) any { return &x.fold.started }},
	{"bound", func(x *Execution) any { return &x.fold.bound }},
	{"raised", func(x *Execution) any { return &x.fold.raised }},
	{"waits", func(x *Execution) any { return &x.fold.waits }},
	{"forks", func(x *Execution) any { return &x.fold.forks }},
}

var waitMembers = []jsonField[Wait]{
	{"kind", func(x *Wait) any { return (*string)(&x.Kind) }},
	{"node", func(x *Wait) any { return &x.NodeID }},
	{"visit", func(x *Wait) any { return &x.Visit }},
	{"parallelSpan", func(x *Wait) any { return &x.Span }},
	{"blockVisit", func(x *Wait) any { return &x.BlockVisit }},
	{"nodeType", func(x *Wait) any { return &x.NodeType }},
	{"attempt", func(x *Wait) any { return &x.Attempt }},
	{"mode", func(x *Wait) any { return &x.Mode }},
	{"agent", func(x *Wait) any { return &x.AgentID }},
	{"protocol", func(x *Wait) any { return &x.Protocol }},
	{"correlation", func(x *Wait) any { return &x.Correlation }},
	{"input", func(x *Wait) any { return &x.Input }},
	{"task", func(x *Wait) any { return &x.ExternalTask }},
	{"queued", func(x *Wait) any { return &x.Queued }},
	{"prompt", func(x *Wait) any { return &x.Prompt }},
	{"signal", func(x *Wait) any { return &x.SignalName }},
	{"due", func(x *Wait) any { return &x.Due }},
	{"child", func(x *Wait) any { return &x.ChildExecutionID }},
}

var forkMembers = []jsonField[fork]{
	{"node", func(x *fork) any { return &x.node }},
	{"visit", func(x *fork) any { return &x.visit }},
	{"join", func(x *fork) any { return &x.join }},
	{"branches", func(x *fork) any { return &x.branches }},
}

// AppendText appends the projection in its stored form, as JSON. It includes the state of Apply, but not the run's id, which is the key.
func (e *Execution) AppendText(dst []byte) []byte {
	w := objectWriter{buf: append(dst, '{')}
	writeObject(&w, executionMembers, e, "")
	return append(w.buf, '}')
}

// WrittenAs reports whether a stored text equals the projection's text, or the text without prompts of an earlier version.
func (e *Execution) WrittenAs(text string) bool {
	if text == string(e.AppendText(nil)) {
		return true
	}
	earlier := *e
	earlier.fold.waits = slices.Clone(e.fold.waits)
	for i := range earlier.fold.waits {
		earlier.fold.waits[i].Prompt = ""
	}
	return text == string(earlier.AppendText(nil))
}

// ParseExecution parses the result of AppendText. The error has code HISTORY_CORRUPT.
func ParseExecution(executionID string, raw []byte) (Execution, error) {
	v, err := jsonvalue.Decode(raw)
	m := object(v)
	if err != nil || m == nil {
		return Execution{}, problem.New(problem.HistoryCorrupt, "the stored projection of run %q cannot be read", executionID).
			WithPlace(problem.Place{ExecutionID: executionID}).WithCause(err)
	}
	e := Execution{ID: executionID}
	readObject(m, executionMembers, &e)
	e.settle()
	return e, nil
}
