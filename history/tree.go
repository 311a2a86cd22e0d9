package history

import (
	"slices"
	"strings"
)

// TreeUse is the total use of a run and all subworkflows below it; see Store.Tree. Ended runs count too.
type TreeUse struct {
	Runs    int64
	Visits  int64
	Records int64
	Bytes   int64
	// Pending is the number of activities and delegates that the runs of the tree await, including those in a back-off.
	Pending int64
}

// Add adds a run's use n times; an n of -1 subtracts it. The use of a run without records is zero.
func (u *TreeUse) Add(e *Execution, n int64) {
	if e.Seq == 0 {
		return
	}
	u.Runs += n
	u.Visits += n * e.NodeVisits
	u.Records += n * e.Seq
	u.Bytes += n * e.Bytes
	for i := range e.Waits {
		if k := e.Waits[i].Kind; k == WaitActivity || k == WaitBackoff {
			u.Pending += n
		}
	}
}

// InTree reports whether a run belongs to a tree of several runs: it is a subworkflow or has started one.
func (e *Execution) InTree() bool { return e.Parent != "" || e.ChildExecutionID != "" }

// Root returns the id of the root of a run's tree, derived from the run's id.
func Root(executionID string) string {
	for {
		i := strings.LastIndex(executionID, ChildMark)
		if i <= 0 {
			return executionID
		}
		executionID = executionID[:i]
	}
}

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

// Kind returns the kind of records of this name, "" for a name outside the protocol.
func (n Name) Kind() Kind { return kindOf[n] }

// Terminal reports whether an event of this name ends a run, if it is not followed by a command.
func (n Name) Terminal() bool {
	return n == ExecutionCompleted || n == ExecutionFailed || n == ExecutionCancelled
}
