package history

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Verifier is a Store that can check its data.
type Verifier interface {
	// Verify checks a run, or the whole store if executionID is "", and reports its problems; see the codes of Finding. With repair it also
	// rebuilds projections from the records, and deletes rows of side tables whose run does not exist. Without repair it changes nothing, and
	// it never changes a record. It reads each run in one snapshot. It returns EXECUTION_NOT_FOUND if nothing is stored under executionID.
	Verify(ctx context.Context, executionID string, repair bool, report func(Finding)) (Verified, error)
}

// Verified counts the checked data.
type Verified struct {
	Runs, Records, Definitions int64
}

// Finding is one problem of a store. The codes are DATABASE_DAMAGED, RECORD_GAP, RECORD_UNREADABLE,
// HISTORY_VERSION_UNSUPPORTED, RECORD_AFTER_END, OUTCOME_TWICE, AGENT_STEPS_GAP, PROJECTION_DIFFERS, ROW_ORPHANED, DELETION_UNFINISHED,
// BLOB_DAMAGED, DEFINITION_HASH_MISMATCH and, from replay.Inspect, DEFINITION_REQUIRED, NONDETERMINISM_DETECTED, AGENT_STEPS_DIFFER,
// POSITION_UNUSABLE, TIMERS_DIFFER and SUBWORKFLOW_MISSING.
type Finding struct {
	// ExecutionID is "" if the finding does not concern a run, Seq is 0 if it does not concern a record.
	ExecutionID string
	Seq         int64
	Code        problem.Code
	Message     string
	// Hint suggests a remedy.
	Hint string
	// Repaired is true if Verify has repaired the problem.
	Repaired bool
}

// The hints for damaged records, which are never changed.
const (
	hintRestore = "Records are never repaired. Restore the database from a backup, or export the other runs and continue without this one."
	hintReport  = "The records can be read, but no engine should have written this. Keep a copy of the database and report it."
)

// Audit checks the records of one run in order, and builds its projection. Begin with Audit{ExecutionID: id}.
type Audit struct {
	ExecutionID string
	// Incoming is true for records in a file. Their readable texts (titles, labels, names) must be within the limits of this release; a store
	// may hold longer ones from an earlier release.
	Incoming bool
	// Execution is the projection of the records so far.
	Execution Execution
	// Findings holds the findings so far, at most MaxFindings.
	Findings []Finding

	last  int64
	ended int64
	// other is true after a record of another run.
	other bool
	// settled maps a requested wait to false, and to true after its outcome.
	settled map[settling]bool
	// attempts holds the last requested attempt of each visit.
	attempts map[visited]int
	// steps holds the number of the last journal entry of each attempt.
	steps map[stepsOf]int
}

// visited identifies a visit of a node.
type visited struct {
	node  string
	visit int
}

// MaxFindings is the maximum number of findings about one run.
const MaxFindings = 20

// settling identifies a request that can have only one outcome.
type settling struct {
	kind  WaitKind
	node  string
	visit int
	span  ParallelSpan
}

func (a *Audit) note(seq int64, code problem.Code, hint, format string, args ...any) {
	if len(a.Findings) < MaxFindings {
		a.Findings = append(a.Findings, Finding{
			ExecutionID: a.ExecutionID, Seq: seq, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint,
		})
	}
}

// Record checks the next record. unreadable is the error of reading it; r then holds the readable part.
func (a *Audit) Record(r *Record, unreadable error) {
	if a.Execution.ID == "" {
		a.Execution.ID = a.ExecutionID
		a.settled, a.steps, a.attempts = map[settling]bool{}, map[stepsOf]int{}, map[visited]int{}
	}
	if r.Seq != a.last+1 {
		a.note(r.Seq, problem.RecordGap, hintRestore, "expected record %d, found record %d", a.last+1, r.Seq)
	}
	a.last = r.Seq
	switch e, ok := problem.As(unreadable); {
	case ok && e.Code == problem.HistoryNewer:
		a.note(r.Seq, e.Code, e.Hint, "%s", e.Message)
	case unreadable != nil:
		a.note(r.Seq, problem.RecordUnreadable, hintRestore, "%v", unreadable)
	case r.Name.Kind() == "":
		a.note(r.Seq, problem.RecordUnreadable, hintRestore, "unknown record name %q", r.Name)
	case r.Name.Kind() != r.Kind:
		a.note(r.Seq, problem.RecordUnreadable, hintRestore, "%s is not a record of kind %q", r.Name, r.Kind)
	}
	if unreadable == nil {
		a.ranges(r)
	}
	// Other engines continue after a recorded end, and record outcomes again; this engine never does.
	if a.Execution.Mode != "" && unreadable == nil {
		a.once(r)
	}
	a.Execution.Apply(*r)
}

// Text checks that the stored text of a record's payload names the run. Other engines may leave the name out. Only the first record with another
// name is a finding.
func (a *Audit) Text(seq int64, payload []byte) {
	own := (&Record{}).AppendPayload(nil, a.ExecutionID)
	if a.other || bytes.HasPrefix(payload, own[:len(own)-1]) { // without the brace at the end
		return
	}
	v, err := jsonvalue.Decode(payload)
	if err != nil {
		return
	}
	if name, ok := object(v)["executionId"].(string); ok && name != a.ExecutionID {
		a.other = true
		a.note(seq, problem.RecordUnreadable, hintRestore, "the record is of another run, %q", name)
	}
}

// outcomes maps each event of a request with only one outcome to the kind of the request. settles is true for the outcome itself.
var outcomes = map[Name]struct {
	kind    WaitKind
	settles bool
}{
	ActivityRequested: {WaitActivity, false}, ActivityCompleted: {WaitActivity, true}, ActivityFailed: {WaitActivity, true},
	InterruptRaised: {WaitInterrupt, false}, InterruptResumed: {WaitInterrupt, true},
	SignalWaitStarted: {WaitSignal, false}, SignalReceived: {WaitSignal, true},
	TimerStarted: {WaitTimer, false}, TimerFired: {WaitTimer, true},
	SubworkflowStarted: {WaitSubworkflow, false}, SubworkflowCompleted: {WaitSubworkflow, true},
}

// ranges checks fields whose values have a range.
func (a *Audit) ranges(r *Record) {
	wrong := func(format string, args ...any) { a.note(r.Seq, problem.RecordUnreadable, hintReport, format, args...) }
	if !inRange(r.CreatedAt) {
		wrong("the record is of the year %d", r.CreatedAt.UTC().Year())
	}
	p := &r.Payload
	if name, found, want := a.misfit(r); name != "" {
		wrong("%s has %s as its %s, expected %s", r.Name, found, name, want)
		return
	}
	if r.Name != ExecutionStarted || p.Mode == "" { // without a mode another engine has begun the run
		return
	}
	levels := strings.Count(a.ExecutionID, ChildMark)
	switch {
	case p.Mode != modeInProc && p.Mode != modeHost:
		wrong("unknown mode %q", p.Mode)
	case p.Depth < 0 || p.Depth > levels:
		wrong("the id %q has at most %d levels of subworkflows, and the run is at depth %d", a.ExecutionID, levels, p.Depth)
	case p.ParentExecutionID != "" && !Descends(a.ExecutionID, p.ParentExecutionID):
		wrong("the run says that it is a subworkflow of %q, and its id %q does not", p.ParentExecutionID, a.ExecutionID)
	case p.ParentExecutionID == "" && p.Depth > 0:
		wrong("the run is at depth %d, and names no parent", p.Depth)
	}
}

func (a *Audit) once(r *Record) {
	if a.ended > 0 {
		a.note(r.Seq, problem.RecordAfterEnd, hintReport, "%s follows record %d, which ended the run", r.Name, a.ended)
	}
	if r.Kind != Event {
		return
	}
	if r.Name.Terminal() {
		a.ended = r.Seq
	}
	p := &r.Payload
	if p.AgentStep != nil {
		a.step(r)
		return
	}
	a.attempt(r)
	key := settling{node: p.NodeID, visit: p.Visit}
	if p.Span != nil {
		key.span = *p.Span
	}
	about, ok := outcomes[r.Name]
	if !ok {
		return
	}
	key.kind = about.kind
	settles := about.settles && !p.Replayed
	if settles && a.settled[key] {
		a.note(r.Seq, problem.OutcomeTwice, hintReport, "%s: the %s at %q already has an outcome", r.Name, key.kind, p.NodeID)
	}
	a.settled[key] = settles
	if !settles {
		key.span = ParallelSpan{} // the outcome of an executor has no branch
		a.settled[key] = false
	}
}

// attempt checks that attempts are numbered from 1.
func (a *Audit) attempt(r *Record) {
	at, number := visited{r.Payload.NodeID, max(r.Payload.Visit, 1)}, max(r.Payload.Attempt, 1)
	if r.Foreign || r.Name != ActivityRequested && r.Name != ActivityFailed {
		return
	}
	if last := a.attempts[at]; number > last+1 {
		a.note(r.Seq, problem.RecordUnreadable, hintReport, "%s has %d as its attempt, expected at most %d", r.Name, number, last+1)
	}
	if r.Name == ActivityRequested {
		a.attempts[at] = number
	}
}
