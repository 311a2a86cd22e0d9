package history

// kinds lists every record name with its kind. The order is that of the protocol's tables.
var kinds = []struct {
	name Name
	kind Kind
}{
	{ScheduleNode, Command},
	{CompleteNode, Command},
	{FailNode, Command},
	{StartParallel, Command},
	{JoinParallel, Command},
	{CancelParallelBranch, Command},
	{StartTimer, Command},
	{StartSignalWait, Command},
	{DeliverSignal, Command},
	{RaiseInterrupt, Command},
	{ResumeInterrupt, Command},
	{StartSubworkflow, Command},
	{CompleteSubworkflow, Command},
	{CancelExecution, Command},

	{ExecutionStarted, Event},
	{NodeScheduled, Event},
	{ActivityRequested, Event},
	{ActivityCompleted, Event},
	{ActivityFailed, Event},
	{StateUpdated, Event},
	{CheckpointWritten, Event},
	{InterruptRaised, Event},
	{InterruptResumed, Event},
	{ParallelForked, Event},
	{ParallelJoined, Event},
	{ParallelBranchCancelled, Event},
	{TimerStarted, Event},
	{TimerFired, Event},
	{SignalWaitStarted, Event},
	{SignalReceived, Event},
	{SubworkflowStarted, Event},
	{SubworkflowCompleted, Event},
	{ExecutionCompleted, Event},
	{ExecutionFailed, Event},
	{ExecutionCancelled, Event},
}

var kindOf = func() map[Name]Kind {
	m := make(map[Name]Kind, len(kinds))
	for _, k := range kinds {
		m[k.name] = k.kind
	}
	return m
}()

// Names lists all record names, commands first, in the order of the protocol's tables (spec: execution, 2.2 and 2.3).
func Names() []Name {
	out := make([]Name, len(kinds))
	for i, k := range kinds {
		out[i] = k.name
	}
	return out
}

// Kind returns whether records of this name are commands or events; "" for a name that the protocol does not have.
func (n Name) Kind() Kind { return kindOf[n] }

// Terminal reports whether an event of this name ends a run, if no command follows it.
func (n Name) Terminal() bool {
	return n == ExecutionCompleted || n == ExecutionFailed || n == ExecutionCancelled
}
