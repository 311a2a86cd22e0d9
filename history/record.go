package history

import "time"

// Kind says whether a record is a command, part of the run's script, or an event, one of its facts.
type Kind string

// The two kinds of records (spec: execution, 2.1).
const (
	Command Kind = "command"
	Event   Kind = "event"
)

// Name is the name of a record. No other names than those below are written.
type Name string

// Commands (spec: execution, 2.2).
const (
	ScheduleNode         Name = "ScheduleNode"
	CompleteNode         Name = "CompleteNode"
	FailNode             Name = "FailNode"
	StartParallel        Name = "StartParallel"
	JoinParallel         Name = "JoinParallel"
	CancelParallelBranch Name = "CancelParallelBranch"
	StartTimer           Name = "StartTimer"
	StartSignalWait      Name = "StartSignalWait"
	DeliverSignal        Name = "DeliverSignal"
	RaiseInterrupt       Name = "RaiseInterrupt"
	ResumeInterrupt      Name = "ResumeInterrupt"
	StartSubworkflow     Name = "StartSubworkflow"
	CompleteSubworkflow  Name = "CompleteSubworkflow"
	CancelExecution      Name = "CancelExecution"
)

// Events (spec: execution, 2.3).
const (
	ExecutionStarted        Name = "ExecutionStarted"
	NodeScheduled           Name = "NodeScheduled"
	ActivityRequested       Name = "ActivityRequested"
	ActivityCompleted       Name = "ActivityCompleted"
	ActivityFailed          Name = "ActivityFailed"
	StateUpdated            Name = "StateUpdated"
	CheckpointWritten       Name = "CheckpointWritten"
	InterruptRaised         Name = "InterruptRaised"
	InterruptResumed        Name = "InterruptResumed"
	ParallelForked          Name = "ParallelForked"
	ParallelJoined          Name = "ParallelJoined"
	ParallelBranchCancelled Name = "ParallelBranchCancelled"
	TimerStarted            Name = "TimerStarted"
	TimerFired              Name = "TimerFired"
	SignalWaitStarted       Name = "SignalWaitStarted"
	SignalReceived          Name = "SignalReceived"
	SubworkflowStarted      Name = "SubworkflowStarted"
	SubworkflowCompleted    Name = "SubworkflowCompleted"
	// SignalKept says that a signal has come before a wait for it. Added.
	SignalKept Name = "SignalKept"
	// RollbackStarted says why a run or a branch is rolled back, and how much is to be undone. Added.
	RollbackStarted Name = "RollbackStarted"
	// MapStarted says how many items a node with a map is repeated for. Added.
	MapStarted         Name = "MapStarted"
	ExecutionCompleted Name = "ExecutionCompleted"
	ExecutionFailed    Name = "ExecutionFailed"
	ExecutionCancelled Name = "ExecutionCancelled"
)

// RecordSchemaVersion is the version of the row envelope that this package writes. A reader refuses higher ones
// (spec: execution, 10.7).
const RecordSchemaVersion = 1

// Record is one row of a run's append-only history.
type Record struct {
	// Seq is 1 for the first record of a run and grows by 1. The store assigns it.
	Seq int64
	Kind
	Name    Name
	Payload Payload
	// CreatedAt is UTC with millisecond precision. The writer sets it.
	CreatedAt time.Time
	// Raw is the payload text as stored, with the members that Payload does not know. Only reading sets it. It is nil for a
	// record whose large values the store keeps elsewhere; Text returns the payload of any record.
	Raw []byte
	// Foreign is true for a record that another engine wrote. Only reading sets it, if the store knows.
	Foreign bool
	// Attempt is the attempt that an ActivityCompleted or ActivityFailed ends. Only the machine sets it, for graph.Options.OnRecord: it
	// is not stored.
	Attempt *Attempt
}

// Attempt names one attempt of an activity or delegate.
type Attempt struct {
	NodeID string
	// Visit counts the visits of the node in the run, for a map also its items; Number the attempts of the visit. Both begin at 1.
	Visit, Number int
	// IdempotencyKey is the key that the executor or the host was given.
	IdempotencyKey string
}
