package history

import (
	"math"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Kind distinguishes commands, the run's script, from events, its facts.
type Kind string

// The two kinds of records (spec: execution, 2.1).
const (
	Command Kind = "command"
	Event   Kind = "event"
)

// Name is the name of a record. Only the names below are written.
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
	// SignalKept records a signal that arrived before a wait for it. Added.
	SignalKept Name = "SignalKept"
	// RollbackStarted records the reason for the rollback of a run or a branch, and the number of compensations. Added.
	RollbackStarted Name = "RollbackStarted"
	// MapStarted records the number of items of a node with a map. Added.
	MapStarted         Name = "MapStarted"
	ExecutionCompleted Name = "ExecutionCompleted"
	ExecutionFailed    Name = "ExecutionFailed"
	ExecutionCancelled Name = "ExecutionCancelled"
)

// RecordSchemaVersion is the version of the row envelope that this package writes. Readers refuse higher versions (spec: execution, 10.7).
const RecordSchemaVersion = 1

// Record is one entry of a run's append-only history.
type Record struct {
	// Seq numbers the records of a run from 1 without gaps. The store assigns it.
	Seq int64
	Kind
	Name    Name
	Payload Payload
	// CreatedAt is UTC with millisecond precision. The writer sets it.
	CreatedAt time.Time
	// Raw is the payload text as stored, including fields unknown to Payload. Only reading sets it. It is nil if the store keeps large values
	// of the record elsewhere; Text returns the payload of any record.
	Raw []byte
	// Foreign is true for a record that another engine wrote. Only reading sets it, if the store has this information.
	Foreign bool
	// Attempt is the attempt that an ActivityCompleted or ActivityFailed ends. Only the machine sets it, for graph.Options.OnRecord. It is
	// not stored.
	Attempt *Attempt
}

// Attempt identifies one attempt of an activity or delegate.
type Attempt struct {
	NodeID string
	// Visit counts the node's visits in the run, for a map also its items. Number counts the visit's attempts. Both begin at 1.
	Visit, Number int
	// IdempotencyKey is the key that the executor or the host received.
	IdempotencyKey string
}

// RowVersion returns the record schema version of a stored value: the value itself if it is an integer of at least 1, else 1 (spec:
// execution, 10.7). Stored values are int64, float64, string, []byte or nil, as SQL drivers return them.
func RowVersion(stored any) int64 {
	switch v := stored.(type) {
	case int64:
		return max(v, 1)
	case float64:
		if v == math.Trunc(v) && v >= 1 && v < math.MaxInt64 {
			return int64(v)
		}
	}
	return 1
}

// CheckRowVersion returns HISTORY_VERSION_UNSUPPORTED for a row of a version newer than RecordSchemaVersion.
func CheckRowVersion(executionID string, seq int64, stored any) error {
	v := RowVersion(stored)
	if v <= RecordSchemaVersion {
		return nil
	}
	return problem.New(problem.HistoryNewer, "record %d of run %q has version %d; this engine reads up to %d",
		seq, executionID, v, RecordSchemaVersion).
		WithPlace(problem.Place{ExecutionID: executionID}).
		WithHint("A newer engine wrote to this run. Continue it with that engine, or update this one.")
}

// timestampLayout is the protocol's time format: UTC, milliseconds, 24 characters (spec: execution, 2.1).
const timestampLayout = "2006-01-02T15:04:05.000Z"

// AppendTimestamp appends a time in the protocol's format, for instance 2026-11-21T01:03:46.919Z, truncated to milliseconds.
func AppendTimestamp(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(dst, timestampLayout)
	}
	hour, minute, second := t.Clock()
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(dst,
		digit(year/1000), digit(year/100), digit(year/10), digit(year), '-',
		digit(int(month)/10), digit(int(month)), '-', digit(day/10), digit(day), 'T',
		digit(hour/10), digit(hour), ':', digit(minute/10), digit(minute), ':', digit(second/10), digit(second), '.',
		digit(ms/100), digit(ms/10), digit(ms), 'Z')
}

func digit(n int) byte { return byte('0' + n%10) }

// FormatTimestamp returns a time in the protocol's format.
func FormatTimestamp(t time.Time) string {
	return string(AppendTimestamp(make([]byte, 0, len(timestampLayout)), t))
}

// ParseTimestamp parses an RFC 3339 time of any precision and zone, and returns it in UTC.
func ParseTimestamp(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	return t.UTC(), err
}

// CeilMillis returns a time in milliseconds since 1970, rounded up, so that a timer is never early.
func CeilMillis(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return ms
}
