package history

import (
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// executionMembers, waitMembers and forkMembers are the members of a stored projection in the order in which they are written.
var executionMembers = []member[Execution]{
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

var waitMembers = []member[Wait]{
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

var forkMembers = []member[fork]{
	{"node", func(x *fork) any { return &x.node }},
	{"visit", func(x *fork) any { return &x.visit }},
	{"join", func(x *fork) any { return &x.join }},
	{"branches", func(x *fork) any { return &x.branches }},
}

// AppendText appends the projection as the JSON text that stores keep. It holds everything but the run's id, which is the key,
// including what Apply needs to continue.
func (e *Execution) AppendText(dst []byte) []byte {
	w := objectWriter{buf: append(dst, '{')}
	writeObject(&w, executionMembers, e, "")
	return append(w.buf, '}')
}

// WrittenAs reports whether a stored text is that of the projection, or the text without prompts of an earlier version.
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
