package history

import "sync"

// jsonField is a field of the JSON object that stores a T.
type jsonField[T any] struct {
	name string
	// field returns a pointer to the Go field of the T.
	field func(*T) any
}

// stateRef is the type of Payload.StateRef in payloadFields: the state is stored within an object.
type stateRef map[string]any

// writtenEmpty maps a record name to the field that is written even if it is empty.
var writtenEmpty = map[Name]string{
	ExecutionStarted: "inputKeys", StartParallel: "branchNames", ParallelForked: "branchNames",
	RaiseInterrupt: "prompt", InterruptRaised: "prompt",
}

// payloadTable lists the payload fields in the order of writing, with their allowed values.
var payloadTable = []payloadMember{
	{"nodeId", func(p *Payload) any { return &p.NodeID }, anyText},
	{"visit", func(p *Payload) any { return &p.Visit }, count},
	// The run and its definition.
	{"policy", func(p *Payload) any { return &p.Policy }, anyText},
	{"intervalNodes", func(p *Payload) any { return &p.IntervalNodes }, count},
	{"workflowName", func(p *Payload) any { return &p.WorkflowName }, anyText},
	{"workflowVersion", func(p *Payload) any { return &p.WorkflowVersion }, anyText},
	{"inputKeys", func(p *Payload) any { return &p.InputKeys }, list},
	{"definitionHash", func(p *Payload) any { return &p.DefinitionHash }, anyText},
	{"inputHash", func(p *Payload) any { return &p.InputHash }, hash},
	{"input", func(p *Payload) any { return &p.Input }, anyObject},
	{"branches", func(p *Payload) any { return &p.Branches }, oneOf("concurrent", "sequential")},
	{"depth", func(p *Payload) any { return &p.Depth }, count},
	{"traceParent", func(p *Payload) any { return &p.TraceParent }, traceParent},
	{"priority", func(p *Payload) any { return &p.Priority }, whole},
	{"forkedFrom", func(p *Payload) any { return &p.ForkedFrom }, forkOrigin},
	{"title", func(p *Payload) any { return &p.Title }, title},
	{"labels", func(p *Payload) any { return &p.Labels }, labels},
	{"notify", func(p *Payload) any { return &p.Notify }, targets},
	{"queue", func(p *Payload) any { return &p.Queue }, queueName},
	// Nodes, blocks, timers, signals and interrupts.
	{"reason", func(p *Payload) any { return &p.Reason }, anyText},
	{"message", func(p *Payload) any { return &p.Message }, anyText},
	{"failedNodeId", func(p *Payload) any { return &p.FailedNodeID }, anyText},
	{"caughtBy", func(p *Payload) any { return &p.CaughtBy }, anyText},
	{"target", func(p *Payload) any { return &p.Target }, anyText},
	{"join", func(p *Payload) any { return &p.Join }, anyText},
	{"branchNames", func(p *Payload) any { return &p.BranchNames }, list},
	{"n", func(p *Payload) any { return &p.N }, count},
	{"branchName", func(p *Payload) any { return &p.BranchName }, anyText},
	{"winners", func(p *Payload) any { return &p.Winners }, list},
	{"items", func(p *Payload) any { return &p.Items }, anyValue},
	{"compensations", func(p *Payload) any { return &p.Compensations }, sofar},
	{"compensates", func(p *Payload) any { return &p.Compensates }, anyText},
	{"kind", func(p *Payload) any { return &p.TimerKind }, oneOf("duration", "until", "deadline")},
	{"wait_ms", func(p *Payload) any { return &p.WaitMS }, anyValue},
	{"until", func(p *Payload) any { return &p.Until }, anyText},
	{"dueAt", func(p *Payload) any { return &p.DueAt }, moment},
	{"deadlineAt", func(p *Payload) any { return &p.DeadlineAt }, later},
	{"signalName", func(p *Payload) any { return &p.SignalName }, anyText},
	{"payload", func(p *Payload) any { return &p.SignalPayload }, anyObject},
	{"prompt", func(p *Payload) any { return &p.Prompt }, anyText},
	{"output", func(p *Payload) any { return &p.Output }, anyObject},
	{"state", func(p *Payload) any { return &p.State }, anyObject},
	// Activities and delegates.
	{"nodeType", func(p *Payload) any { return &p.NodeType }, anyText},
	{"timeoutMs", func(p *Payload) any { return &p.TimeoutMS }, ms},
	{"parallelSpan", func(p *Payload) any { return &p.Span }, branch},
	{"blockVisit", func(p *Payload) any { return &p.BlockVisit }, count},
	{"result", func(p *Payload) any { return &p.Result }, anyValue},
	{"error", func(p *Payload) any { return &p.Error }, anyText},
	{"attempt", func(p *Payload) any { return &p.Attempt }, count},
	{"code", func(p *Payload) any { return &p.Code }, anyText},
	{"willRetry", func(p *Payload) any { return &p.WillRetry }, flag},
	{"retryAt", func(p *Payload) any { return &p.RetryAt }, later},
	{"agentId", func(p *Payload) any { return &p.AgentID }, anyText},
	{"protocol", func(p *Payload) any { return &p.Protocol }, anyText},
	{"delegateCorrelationId", func(p *Payload) any { return &p.Correlation }, anyText},
	{"externalTaskId", func(p *Payload) any { return &p.ExternalTask }, anyText},
	{"externalContextId", func(p *Payload) any { return &p.ExternalContext }, anyText},
	{"delegateInput", func(p *Payload) any { return &p.DelegateInput }, anyObject},
	{MemberRequest, func(p *Payload) any { return &p.Request }, anyObject},
	{MemberAgentStep, func(p *Payload) any { return &p.AgentStep }, anyObject},
	{"activityExecutionMode", func(p *Payload) any { return &p.Mode }, oneOf(modeInProc, modeHost)},
	{"idempotencyKey", func(p *Payload) any { return &p.IdempotencyKey }, anyText},
	{"data", func(p *Payload) any { return &p.Data }, anyObject},
	{"usage", func(p *Payload) any { return &p.Usage }, anyObject},
	{"partial", func(p *Payload) any { return &p.Partial }, textsByName},
	{"repair", func(p *Payload) any { return &p.Repair }, anyObject},
	{"keepTasks", func(p *Payload) any { return &p.KeepTasks }, flag},
	{"queued", func(p *Payload) any { return &p.Queued }, flag},
	{"failFast", func(p *Payload) any { return &p.FailFast }, flag},
	{"correction", func(p *Payload) any { return &p.Correction }, ofFork},
	// Subworkflows.
	{"attempts", func(p *Payload) any { return &p.Attempts }, countsByName},
	{"subworkflows", func(p *Payload) any { return &p.Subworkflows }, hashesByName},
	{"workflowRef", func(p *Payload) any { return &p.WorkflowRef }, anyText},
	{"parentExecutionId", func(p *Payload) any { return &p.ParentExecutionID }, anyText},
	{"childExecutionId", func(p *Payload) any { return &p.ChildExecutionID }, anyText},
	{"childFinalState", func(p *Payload) any { return &p.ChildFinalState }, anyObject},
	{"childResult", func(p *Payload) any { return &p.ChildResult }, anyValue},
	{"mergedOutput", func(p *Payload) any { return &p.MergedOutput }, anyObject},
	{"failed", func(p *Payload) any { return &p.Failed }, flag},
	{"replayed", func(p *Payload) any { return &p.Replayed }, flag},
	{"childDefinitionHash", func(p *Payload) any { return &p.ChildDefinitionHash }, hash},
	// Checkpoints, and replay mismatches that end a run.
	{"lastAppliedEventSeq", func(p *Payload) any { return &p.LastAppliedEventSeq }, sofar},
	{fieldStateRef, func(p *Payload) any { return (*stateRef)(&p.StateRef) }, stateReference},
	{"context", func(p *Payload) any { return &p.Context }, mismatched},
	// The caller. The last two stay last: an import appends them to a text; see package graph/transfer.
	{"actor", func(p *Payload) any { return &p.Actor }, author},
	{"importedAt", func(p *Payload) any { return &p.ImportedAt }, moment},
	{"importedBy", func(p *Payload) any { return &p.ImportedBy }, author},
}

// payloadFields lists the payload fields for writing and reading.
var payloadFields = func() []jsonField[Payload] {
	var all []jsonField[Payload]
	for _, m := range payloadTable {
		all = append(all, jsonField[Payload]{m.name, m.field})
	}
	return all
}()

// payloadNumbers maps a field's name to its index in payloadTable.
var payloadNumbers = sync.OnceValue(func() map[string]int {
	m := make(map[string]int, len(payloadTable))
	for i := range payloadTable {
		m[payloadTable[i].name] = i
	}
	return m
})
