package history

import "sync"

// member is a member of the JSON object that a T is stored as.
type member[T any] struct {
	name string
	// field returns the pointer to the field of the T that holds the member.
	field func(*T) any
}

// stateRef is the type of Payload.StateRef for its member of payloadMembers: the state is stored inside of an object.
type stateRef map[string]any

// writtenEmpty names the member that the records of a name have even when it is empty.
var writtenEmpty = map[Name]string{
	ExecutionStarted: "inputKeys", StartParallel: "branchNames", ParallelForked: "branchNames",
	RaiseInterrupt: "prompt", InterruptRaised: "prompt",
}

// payloadMembers are the members of payloads in the order in which they are written.
var payloadMembers = []member[Payload]{
	{"nodeId", func(p *Payload) any { return &p.NodeID }},
	{"visit", func(p *Payload) any { return &p.Visit }},
	// The run and its definition.
	{"policy", func(p *Payload) any { return &p.Policy }},
	{"intervalNodes", func(p *Payload) any { return &p.IntervalNodes }},
	{"workflowName", func(p *Payload) any { return &p.WorkflowName }},
	{"workflowVersion", func(p *Payload) any { return &p.WorkflowVersion }},
	{"inputKeys", func(p *Payload) any { return &p.InputKeys }},
	{"definitionHash", func(p *Payload) any { return &p.DefinitionHash }},
	{"inputHash", func(p *Payload) any { return &p.InputHash }},
	{"input", func(p *Payload) any { return &p.Input }},
	{"branches", func(p *Payload) any { return &p.Branches }},
	{"depth", func(p *Payload) any { return &p.Depth }},
	{"traceParent", func(p *Payload) any { return &p.TraceParent }},
	{"priority", func(p *Payload) any { return &p.Priority }},
	{"forkedFrom", func(p *Payload) any { return &p.ForkedFrom }},
	{"title", func(p *Payload) any { return &p.Title }},
	{"labels", func(p *Payload) any { return &p.Labels }},
	{"notify", func(p *Payload) any { return &p.Notify }},
	// Nodes, blocks, timers, signals and interrupts.
	{"reason", func(p *Payload) any { return &p.Reason }},
	{"message", func(p *Payload) any { return &p.Message }},
	{"failedNodeId", func(p *Payload) any { return &p.FailedNodeID }},
	{"caughtBy", func(p *Payload) any { return &p.CaughtBy }},
	{"target", func(p *Payload) any { return &p.Target }},
	{"join", func(p *Payload) any { return &p.Join }},
	{"branchNames", func(p *Payload) any { return &p.BranchNames }},
	{"n", func(p *Payload) any { return &p.N }},
	{"branchName", func(p *Payload) any { return &p.BranchName }},
	{"winners", func(p *Payload) any { return &p.Winners }},
	{"items", func(p *Payload) any { return &p.Items }},
	{"compensations", func(p *Payload) any { return &p.Compensations }},
	{"compensates", func(p *Payload) any { return &p.Compensates }},
	{"kind", func(p *Payload) any { return &p.TimerKind }},
	{"wait_ms", func(p *Payload) any { return &p.WaitMS }},
	{"until", func(p *Payload) any { return &p.Until }},
	{"dueAt", func(p *Payload) any { return &p.DueAt }},
	{"signalName", func(p *Payload) any { return &p.SignalName }},
	{"payload", func(p *Payload) any { return &p.SignalPayload }},
	{"prompt", func(p *Payload) any { return &p.Prompt }},
	{"output", func(p *Payload) any { return &p.Output }},
	{"state", func(p *Payload) any { return &p.State }},
	// Activities and delegates.
	{"nodeType", func(p *Payload) any { return &p.NodeType }},
	{"timeoutMs", func(p *Payload) any { return &p.TimeoutMS }},
	{"parallelSpan", func(p *Payload) any { return &p.Span }},
	{"blockVisit", func(p *Payload) any { return &p.BlockVisit }},
	{"result", func(p *Payload) any { return &p.Result }},
	{"error", func(p *Payload) any { return &p.Error }},
	{"attempt", func(p *Payload) any { return &p.Attempt }},
	{"code", func(p *Payload) any { return &p.Code }},
	{"willRetry", func(p *Payload) any { return &p.WillRetry }},
	{"retryAt", func(p *Payload) any { return &p.RetryAt }},
	{"agentId", func(p *Payload) any { return &p.AgentID }},
	{"protocol", func(p *Payload) any { return &p.Protocol }},
	{"delegateCorrelationId", func(p *Payload) any { return &p.Correlation }},
	{"externalTaskId", func(p *Payload) any { return &p.ExternalTask }},
	{"externalContextId", func(p *Payload) any { return &p.ExternalContext }},
	{"delegateInput", func(p *Payload) any { return &p.DelegateInput }},
	{MemberRequest, func(p *Payload) any { return &p.Request }},
	{MemberAgentStep, func(p *Payload) any { return &p.AgentStep }},
	{"activityExecutionMode", func(p *Payload) any { return &p.Mode }},
	{"idempotencyKey", func(p *Payload) any { return &p.IdempotencyKey }},
	{"data", func(p *Payload) any { return &p.Data }},
	{"usage", func(p *Payload) any { return &p.Usage }},
	{"partial", func(p *Payload) any { return &p.Partial }},
	{"repair", func(p *Payload) any { return &p.Repair }},
	{"keepTasks", func(p *Payload) any { return &p.KeepTasks }},
	{"queued", func(p *Payload) any { return &p.Queued }},
	{"failFast", func(p *Payload) any { return &p.FailFast }},
	{"correction", func(p *Payload) any { return &p.Correction }},
	// Subworkflows.
	{"attempts", func(p *Payload) any { return &p.Attempts }},
	{"subworkflows", func(p *Payload) any { return &p.Subworkflows }},
	{"workflowRef", func(p *Payload) any { return &p.WorkflowRef }},
	{"parentExecutionId", func(p *Payload) any { return &p.ParentExecutionID }},
	{"childExecutionId", func(p *Payload) any { return &p.ChildExecutionID }},
	{"childFinalState", func(p *Payload) any { return &p.ChildFinalState }},
	{"childResult", func(p *Payload) any { return &p.ChildResult }},
	{"mergedOutput", func(p *Payload) any { return &p.MergedOutput }},
	{"failed", func(p *Payload) any { return &p.Failed }},
	{"replayed", func(p *Payload) any { return &p.Replayed }},
	{"childDefinitionHash", func(p *Payload) any { return &p.ChildDefinitionHash }},
	// Checkpoints, and the end of a run by a replay mismatch.
	{"lastAppliedEventSeq", func(p *Payload) any { return &p.LastAppliedEventSeq }},
	{memberStateRef, func(p *Payload) any { return (*stateRef)(&p.StateRef) }},
	{"context", func(p *Payload) any { return &p.Context }},
	// Who made the call. The last two stay last: an import adds them to a text; see package graph/transfer.
	{"actor", func(p *Payload) any { return &p.Actor }},
	{"importedAt", func(p *Payload) any { return &p.ImportedAt }},
	{"importedBy", func(p *Payload) any { return &p.ImportedBy }},
}

var payloadFields = sync.OnceValue(func() map[string]func(*Payload) any {
	m := make(map[string]func(*Payload) any, len(payloadMembers))
	for _, x := range payloadMembers {
		m[x.name] = x.field
	}
	return m
})
