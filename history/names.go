package history

import "slices"

// The names of commands and of events, in the order of the protocol's tables.
var (
	commands = []Name{
		ScheduleNode, CompleteNode, FailNode, StartParallel, JoinParallel, CancelParallelBranch, StartTimer, StartSignalWait,
		DeliverSignal, RaiseInterrupt, ResumeInterrupt, StartSubworkflow, CompleteSubworkflow, CancelExecution,
	}
	events = []Name{
		ExecutionStarted, NodeScheduled, ActivityRequested, ActivityCompleted, ActivityFailed, StateUpdated, CheckpointWritten,
		InterruptRaised, InterruptResumed, ParallelForked, ParallelJoined, ParallelBranchCancelled, TimerStarted, TimerFired,
		SignalWaitStarted, SignalReceived, SubworkflowStarted, SubworkflowCompleted, SignalKept, RollbackStarted, MapStarted,
		ExecutionCompleted, ExecutionFailed, ExecutionCancelled,
	}
)

var kindOf = func() map[Name]Kind {
	m := make(map[Name]Kind, len(commands)+len(events))
	for _, n := range commands {
		m[n] = Command
	}
	for _, n := range events {
		m[n] = Event
	}
	return m
}()

// Names lists all record names, commands first, in the order of the protocol's tables (spec: execution, 2.2 and 2.3).
func Names() []Name { return slices.Concat(commands, events) }

// Kind returns whether records of this name are commands or events; "" for a name that the protocol does not have.
func (n Name) Kind() Kind { return kindOf[n] }

// Terminal reports whether an event of this name ends a run, if no command follows it.
func (n Name) Terminal() bool {
	return n == ExecutionCompleted || n == ExecutionFailed || n == ExecutionCancelled
}
