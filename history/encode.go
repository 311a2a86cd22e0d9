package history

import (
	"strconv"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// AppendPayload appends the record's payload as it is stored: a compact JSON object whose first member is executionId
// (spec: execution, 2.1), followed by nodeId and the members that are set. Depending on the record's name some members are
// written even when empty.
func (r *Record) AppendPayload(dst []byte, executionID string) []byte {
	return r.AppendPayloadFunc(dst, executionID, nil)
}

// AppendPayloadFunc is AppendPayload for stores that keep large values elsewhere: value appends the values of the workflow, or
// what replaces them. DecodePayloadFunc is the inverse. If value is nil, the values are written unchanged.
func (r *Record) AppendPayloadFunc(dst []byte, executionID string, value func(dst []byte, member string, v any) []byte) []byte {
	p := &r.Payload
	w := objectWriter{buf: append(dst, '{'), value: value}
	w.name("executionId")
	w.buf = jsonvalue.AppendString(w.buf, executionID)
	w.text("nodeId", p.NodeID)
	w.integer("visit", int64(p.Visit))
	p.appendRun(&w, r.Name)
	p.appendNode(&w, r.Name)
	p.appendActivity(&w)
	p.appendSubworkflow(&w)
	p.appendCheckpoint(&w)
	p.appendEnding(&w)
	return append(w.buf, '}')
}

// appendRun writes the members of ExecutionStarted and CheckpointWritten about the run and its definition.
func (p *Payload) appendRun(w *objectWriter, name Name) {
	w.text("policy", p.Policy)
	w.integer("intervalNodes", int64(p.IntervalNodes))
	w.text("workflowName", p.WorkflowName)
	w.text("workflowVersion", p.WorkflowVersion)
	if name == ExecutionStarted || len(p.InputKeys) > 0 {
		w.texts("inputKeys", p.InputKeys)
	}
	w.text("definitionHash", p.DefinitionHash)
	w.text("inputHash", p.InputHash)
	w.object("input", p.Input)
	w.text("branches", p.Branches)
	w.integer("depth", int64(p.Depth))
	if f := &p.ForkedFrom; f.ExecutionID != "" {
		w.name("forkedFrom")
		w.buf = append(w.buf, `{"executionId":`...)
		w.buf = jsonvalue.AppendString(w.buf, f.ExecutionID)
		w.integer("seq", f.Seq)
		w.buf = append(w.buf, '}')
	}
}

// appendNode writes the members of nodes, blocks, timers, signals and interrupts.
func (p *Payload) appendNode(w *objectWriter, name Name) {
	w.text("reason", p.Reason)
	w.text("message", p.Message)
	w.text("failedNodeId", p.FailedNodeID)
	w.text("join", p.Join)
	if len(p.BranchNames) > 0 || name == StartParallel || name == ParallelForked {
		w.texts("branchNames", p.BranchNames)
	}
	w.integer("n", int64(p.N))
	w.text("branchName", p.BranchName)
	if len(p.Winners) > 0 {
		w.texts("winners", p.Winners)
	}
	w.text("kind", p.TimerKind)
	w.optional("wait_ms", p.WaitMS)
	w.text("until", p.Until)
	w.time("dueAt", p.DueAt)
	w.text("signalName", p.SignalName)
	w.object("payload", p.SignalPayload)
	if p.Prompt != "" || name == RaiseInterrupt || name == InterruptRaised {
		w.name("prompt")
		w.buf = jsonvalue.AppendString(w.buf, p.Prompt)
	}
	w.object("output", p.Output)
	w.object("state", p.State)
}

func (p *Payload) appendActivity(w *objectWriter) {
	w.text("nodeType", p.NodeType)
	w.integer("timeoutMs", p.TimeoutMS)
	w.span(p.Span)
	w.optional("result", p.Result)
	w.text("error", p.Error)
	w.integer("attempt", int64(p.Attempt))
	w.text("code", p.Code)
	w.flag("willRetry", p.WillRetry)
	w.time("retryAt", p.RetryAt)
	w.text("agentId", p.AgentID)
	w.text("protocol", p.Protocol)
	w.text("delegateCorrelationId", p.Correlation)
	w.text("externalTaskId", p.ExternalTask)
	w.text("externalContextId", p.ExternalContext)
	w.object("delegateInput", p.DelegateInput)
	w.text("activityExecutionMode", p.Mode)
	w.text("idempotencyKey", p.IdempotencyKey)
	w.object("usage", p.Usage)
	w.object("repair", p.Repair)
	w.flag("keepTasks", p.KeepTasks)
}

func (p *Payload) appendSubworkflow(w *objectWriter) {
	w.text("workflowRef", p.WorkflowRef)
	w.text("parentExecutionId", p.ParentExecutionID)
	w.text("childExecutionId", p.ChildExecutionID)
	w.object("childFinalState", p.ChildFinalState)
	w.optional("childResult", p.ChildResult)
	w.object("mergedOutput", p.MergedOutput)
	w.flag("failed", p.Failed)
	w.flag("replayed", p.Replayed)
	w.text("childDefinitionHash", p.ChildDefinitionHash)
}

func (p *Payload) appendCheckpoint(w *objectWriter) {
	w.integer("lastAppliedEventSeq", p.LastAppliedEventSeq)
	if p.StateRef != nil {
		w.name("stateRef")
		w.buf = append(w.buf, `{"kind":"inline_state","state":`...)
		w.appendValue(memberStateRef, p.StateRef)
		w.buf = append(w.buf, '}')
	}
}

// appendEnding writes the context of a replay mismatch (spec: execution, 10.3).
func (p *Payload) appendEnding(w *objectWriter) {
	if p.Context == nil {
		return
	}
	w.name("context")
	w.buf = append(w.buf, '{')
	w.identity("expected", &p.Context.Expected)
	w.identity("actual", &p.Context.Actual)
	w.buf = append(w.buf, '}')
}

// objectWriter appends members to an open object. Every method but name leaves the member out when its value is zero.
type objectWriter struct {
	buf []byte
	// value, unless nil, writes the values of the workflow.
	value func(dst []byte, member string, v any) []byte
}

func (w *objectWriter) appendValue(member string, v any) {
	if w.value == nil || !isValue[member] {
		w.buf = jsonvalue.Append(w.buf, v)
		return
	}
	w.buf = w.value(w.buf, member, v)
}

func (w *objectWriter) name(name string) {
	if w.buf[len(w.buf)-1] != '{' {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '"', ':')
}

func (w *objectWriter) text(name, v string) {
	if v != "" {
		w.name(name)
		w.buf = jsonvalue.AppendString(w.buf, v)
	}
}

func (w *objectWriter) integer(name string, v int64) {
	if v != 0 {
		w.name(name)
		w.buf = strconv.AppendInt(w.buf, v, 10)
	}
}

func (w *objectWriter) flag(name string, v bool) {
	if v {
		w.name(name)
		w.buf = append(w.buf, "true"...)
	}
}

func (w *objectWriter) time(name string, t time.Time) {
	if !t.IsZero() {
		w.name(name)
		w.buf = append(w.buf, '"')
		w.buf = append(AppendTimestamp(w.buf, t), '"')
	}
}

func (w *objectWriter) object(name string, v map[string]any) {
	if v != nil {
		w.name(name)
		w.appendValue(name, v)
	}
}

func (w *objectWriter) optional(name string, v Optional) {
	if v.Set {
		w.name(name)
		w.appendValue(name, v.Value)
	}
}

// texts writes the member even when empty.
func (w *objectWriter) texts(name string, vs []string) {
	w.name(name)
	w.buf = append(w.buf, '[')
	for i, v := range vs {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.buf = jsonvalue.AppendString(w.buf, v)
	}
	w.buf = append(w.buf, ']')
}

func (w *objectWriter) span(s *ParallelSpan) {
	if s == nil {
		return
	}
	w.name("parallelSpan")
	w.buf = append(w.buf, '{')
	for _, m := range [...][2]string{
		{"parallelNodeId", s.ParallelNodeID}, {"joinTargetId", s.JoinTargetID},
		{"branchName", s.BranchName}, {"branchEntryNodeId", s.BranchEntryNodeID},
	} {
		w.name(m[0])
		w.buf = jsonvalue.AppendString(w.buf, m[1])
	}
	w.buf = append(w.buf, '}')
}

func (w *objectWriter) identity(name string, c *CommandIdentity) {
	w.name(name)
	w.buf = append(w.buf, '{')
	w.name("name")
	w.buf = jsonvalue.AppendString(w.buf, string(c.Name))
	w.integer("seq", c.Seq)
	w.text("nodeId", c.NodeID)
	w.buf = append(w.buf, '}')
}
