package machine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// recorded is the history of a replay: the script that the machine must repeat, and the facts that are its inputs. It uses only records that
// every engine of the protocol writes (spec: execution, 10.9).
type recorded struct {
	// script is the commands in order; next is the index of the first that has not been repeated. base counts the commands
	// before the script, for the message of a mismatch.
	script []history.Record
	next   int
	base   int
	// tail counts, by name and node, the events after the last command. The machine must not write them again. tailLeft counts those not
	// repeated yet.
	tail     map[eventID]int
	tailLeft int
	// facts of each visit of a node.
	facts map[visitID]*visitFacts
	// states are the states that another engine recorded, by the number of commands before them.
	states map[int]map[string]any
	// corrections are the states set by forks, by the number of commands before them.
	corrections map[int]map[string]any
	// kept are the SignalKept records that have not been applied.
	kept []history.Record
	// expired is the record of the deadline of the run, nil if it has not passed or has been applied.
	expired *history.Record
	// comparison compares values too, unless nil.
	comparison *comparison
}

type eventID struct {
	name   history.Name
	nodeID string
}

type visitID struct {
	nodeID string
	visit  int
}

// visitFacts are the records that end the waits of one visit.
type visitFacts struct {
	requested, failed []history.Record
	completed         *history.Record // the last one before the visit was closed
	closed            *history.Record // CompleteNode of another engine
	waiting           *history.Record // TimerStarted, InterruptRaised, SignalWaitStarted
	timer             *history.Record // TimerFired
	signal            *history.Record
	answer            *history.Record // InterruptResumed or ResumeInterrupt
	child             *history.Record
	failures          []*history.Record // FailNode
	started           bool              // SubworkflowStarted
	from              history.ForkOrigin
	scheduled         bool // NodeScheduled
	scheduledAt       time.Time
	deadlineAt        time.Time
	queued            bool // with an attempt that waits for its turn
	failFast          bool // of a block whose first failure decides
	// task holds the records of a delegate's task at its agent.
	task []history.Record
	// steps are the journal entries of the attempts.
	steps []history.Record
	// used, usedTask and usedSteps count the records of failed, task and steps that have been applied, usedFailures the failures that have been
	// repeated.
	used, usedTask, usedSteps, usedFailures int
}

// readRecorded indexes records. before returns the number of visits of a node before them.
func readRecorded(records []history.Record, before func(nodeID string) int, base int) *recorded {
	if slices.ContainsFunc(records, func(rec history.Record) bool { return rec.Foreign }) {
		records = superseded(records)
	}
	r := &recorded{
		base: base, tail: map[eventID]int{}, facts: map[visitID]*visitFacts{}, states: map[int]map[string]any{},
		corrections: map[int]map[string]any{},
	}
	seen := map[string]int{}
	visits := func(id string) int { return before(id) + seen[id] }
	for i := range records {
		rec := &records[i]
		if rec.Kind == history.Command {
			clear(r.tail)
			r.tailLeft = 0
			r.script = append(r.script, *rec)
			if rec.Name == history.ScheduleNode {
				seen[rec.Payload.NodeID]++
			}
		} else {
			r.tail[eventID{rec.Name, rec.Payload.NodeID}]++
			r.tailLeft++
		}
		if rec.Payload.Correction {
			r.corrections[len(r.script)] = object(rec.Payload.State)
		} else {
			r.noteState(rec)
		}
		if rec.Name == history.SignalKept {
			r.kept = append(r.kept, *rec)
		}
		if rec.Name == history.TimerFired && rec.Payload.NodeID == "" && !rec.Foreign {
			r.expired = rec
		}
		switch {
		case rec.Name == history.FailNode:
			r.noteFailure(rec, visits)
		case rec.Payload.NodeID != "" && !rec.Payload.Replayed:
			r.note(rec, visits)
		}
	}
	return r
}

// visitOf returns the visit that a record belongs to. Facts of this engine have it from the second visit on; for those of another engine,
// the ScheduleNode commands count the visits.
func (r *recorded) visitOf(rec *history.Record, visits func(string) int) int {
	if rec.Kind == history.Command || rec.Payload.Visit == 0 && rec.Foreign {
		return max(visits(rec.Payload.NodeID), 1)
	}
	return max(rec.Payload.Visit, 1)
}

// noteFailure notes a FailNode. In a branch it has its visit, because it may have been held back.
func (r *recorded) noteFailure(rec *history.Record, visits func(string) int) {
	p := &rec.Payload
	node := cmp.Or(p.NodeID, p.FailedNodeID)
	f := r.factsOf(visitID{node, cmp.Or(p.Visit, max(visits(node), 1))})
	f.failures = append(f.failures, rec)
}

func (r *recorded) factsOf(id visitID) *visitFacts {
	f := r.facts[id]
	if f == nil {
		f = &visitFacts{}
		r.facts[id] = f
	}
	return f
}

func (r *recorded) note(rec *history.Record, visits func(string) int) {
	f := r.factsOf(visitID{rec.Payload.NodeID, r.visitOf(rec, visits)})
	if isStepRecord(rec) {
		f.steps = append(f.steps, *rec)
		return
	}
	if isTaskRecord(rec) {
		f.task = append(f.task, *rec)
		return
	}
	switch rec.Name {
	case history.NodeScheduled:
		f.scheduled, f.scheduledAt, f.deadlineAt = true, rec.CreatedAt, rec.Payload.DeadlineAt
		f.queued, f.failFast = rec.Payload.Queued, rec.Payload.FailFast
	case history.ActivityRequested:
		f.requested = append(f.requested, *rec)
	case history.ActivityFailed:
		f.failed = append(f.failed, *rec)
	case history.ActivityCompleted:
		if f.closed == nil || !rec.Foreign {
			f.completed = rec
		}
	case history.CompleteNode:
		// Only records of another engine need it. For a command of this engine that was held back the visit may differ from the
		// number of ScheduleNode commands before it.
		if f.closed == nil && rec.Foreign {
			f.closed = rec
		}
	case history.TimerStarted, history.InterruptRaised, history.SignalWaitStarted:
		if f.waiting == nil {
			f.waiting = rec
		}
	case history.TimerFired:
		f.timer = rec
	case history.DeliverSignal, history.SignalReceived:
		if f.signal == nil && (rec.Kind == history.Event || rec.Foreign) {
			f.signal = rec
		}
	case history.ResumeInterrupt, history.InterruptResumed:
		if (rec.Kind == history.Event || rec.Foreign) && (f.answer == nil || f.answer.Payload.SignalPayload == nil) {
			f.answer = rec
		}
	case history.SubworkflowStarted:
		f.started, f.from = true, rec.Payload.ForkedFrom
	case history.SubworkflowCompleted:
		f.child = rec
	}
}

func (r *recorded) of(t *token) *visitFacts {
	if f := r.facts[visitID{t.node.ID, t.visit}]; f != nil {
		return f
	}
	return &visitFacts{}
}

// requestMode reports whether a request was recorded, and whether the host performs it. Another engine does not record the latter: then the mode
// of the run decides, or the caller's mode if the history has none.
func (r *recorded) requestMode(t *token, attempt int, host bool) (isHost, known bool) {
	q := r.of(t).request(attempt)
	if q == nil {
		return host, false
	}
	if q.Foreign && q.Payload.Mode == "" {
		return host, true
	}
	return q.Payload.Mode == string(HostMediated), true
}

func (f *visitFacts) request(attempt int) *history.Record {
	for i := range f.requested {
		if max(f.requested[i].Payload.Attempt, 1) == attempt {
			return &f.requested[i]
		}
	}
	return nil
}

// requestedAt and waitingSince return the recorded start of an attempt or a wait, or now if the history ends before
// it. Another engine may have written the records of one visit at different times.
func (r *recorded) requestedAt(t *token, attempt int, now time.Time) time.Time {
	if q := r.of(t).request(attempt); q != nil {
		return q.CreatedAt
	}
	return now
}

// scheduledAt returns when a visit was scheduled, or now if the history ends before it.
func (r *recorded) scheduledAt(t *token, now time.Time) time.Time {
	if f := r.of(t); f.scheduled {
		return f.scheduledAt
	}
	return now
}

func (r *recorded) waitingSince(t *token, now time.Time) time.Time {
	if f := r.of(t); f.waiting != nil {
		return f.waiting.CreatedAt
	}
	return now
}

// resolution is a recorded end of a wait: the record, and how to apply it.
type resolution struct {
	seq   int64
	at    time.Time
	apply func(*Machine)
}

// resolve finds the recorded end of a token's wait, or the recorded deadline of its block or visit.
func (r *recorded) resolve(t *token) (resolution, bool) {
	f := r.of(t)
	next, ok := r.resolveWait(t, f)
	if f.timer != nil && !t.limit.IsZero() && (!ok || f.timer.Seq < next.seq) {
		return resolution{seq: f.timer.Seq, at: f.timer.CreatedAt, apply: func(m *Machine) { m.visitExpired(t) }}, true
	}
	return next, ok
}

func (r *recorded) resolveWait(t *token, f *visitFacts) (resolution, bool) {
	by := func(rec *history.Record, apply func(*Machine)) (resolution, bool) {
		return resolution{seq: rec.Seq, at: rec.CreatedAt, apply: apply}, true
	}
	if b := t.inner; b != nil {
		if f.timer != nil && !b.deadline.IsZero() {
			return by(f.timer, func(m *Machine) { m.blockExpired(b) })
		}
		return resolution{}, false
	}
	switch t.wait.Kind {
	case WaitActivity, WaitDelegate:
		if next, ok := r.resolveStep(t, f); ok {
			return next, true
		}
		if w := t.wait; w.rests() || w.Journal != nil && w.Journal.Idle {
			return r.resolveAttempt(t, f) // it can only time out
		}
		if w := t.wait; w.Queued && !w.again {
			if q := f.request(w.Attempt); q != nil {
				return by(q, func(m *Machine) { m.takeTurn(t) })
			}
			return r.resolveQueued(t, f, w.Attempt)
		}
		if next, ok := r.resolveTask(t, f); ok {
			return next, true
		}
		return r.resolveAttempt(t, f)
	case WaitBackoff:
		if q := f.request(t.wait.Attempt + 1); q != nil {
			return by(q, func(m *Machine) { m.fire(t) })
		}
		return r.resolveQueued(t, f, t.wait.Attempt+1)
	case WaitTimer:
		if rec := first(f.timer, f.closed); rec != nil {
			return by(rec, func(m *Machine) { m.fire(t) })
		}
	case WaitSignal:
		if f.timer != nil && f.signal == nil && !t.wait.Deadline.IsZero() {
			return by(f.timer, func(m *Machine) { m.fire(t) })
		}
		if f.signal != nil {
			return by(f.signal, func(m *Machine) {
				m.takeSignal(t, object(f.signal.Payload.SignalPayload), f.signal.Payload.IdempotencyKey)
			})
		}
	case WaitInterrupt:
		if f.timer != nil && f.answer == nil {
			return by(f.timer, func(m *Machine) { m.fire(t) })
		}
		if f.answer != nil {
			payload := f.answer.Payload.SignalPayload
			if payload == nil && f.closed != nil {
				payload = f.closed.Payload.Output
			}
			if payload == nil {
				return resolution{}, false // the answer was lost in a crash: the interrupt is open again
			}
			return by(f.answer, func(m *Machine) { m.takeAnswer(t, payload) })
		}
	case WaitChild:
		if f.child != nil {
			return by(f.child, func(m *Machine) { m.takeChild(t, childOutcome(&f.child.Payload)) })
		}
	}
	return resolution{}, false
}

// resolveAttempt returns the outcome of an attempt: the failures in order, then the completion.
func (r *recorded) resolveAttempt(t *token, f *visitFacts) (resolution, bool) {
	if f.used < len(f.failed) && (f.completed == nil || f.failed[f.used].Seq < f.completed.Seq) {
		rec := &f.failed[f.used]
		o := failedOutcome(rec, t.wait.Host)
		return resolution{seq: rec.Seq, at: rec.CreatedAt, apply: func(m *Machine) { f.used++; m.takeOutcome(t, o) }}, true
	}
	rec := first(f.completed, f.closed)
	if rec == nil {
		return resolution{}, false
	}
	p := &rec.Payload
	o := Outcome{OK: true, Host: p.NodeType != "", ExternalTaskID: p.ExternalTask, IdempotencyKey: p.IdempotencyKey, Usage: p.Usage}
	if rec.Kind == history.Command {
		o.Output = object(p.Output)
	} else if o.Output = p.Result.Value; o.Output == nil {
		o.Output = map[string]any{}
	}
	apply := func(m *Machine) { m.takeOutcome(t, o) }
	if delta, ok := o.Output.(map[string]any); ok && rec.Foreign {
		apply = func(m *Machine) { m.takeOutput(t, o, delta) } // it was checked before it was recorded
	}
	return resolution{seq: rec.Seq, at: rec.CreatedAt, apply: apply}, true
}

// failedOutcome returns the outcome in an ActivityFailed.
func failedOutcome(rec *history.Record, host bool) Outcome {
	p := &rec.Payload
	o := Outcome{Error: p.Error, Code: p.Code, Data: p.Data, Final: !p.WillRetry, Host: host, IdempotencyKey: p.IdempotencyKey, Usage: p.Usage, Repair: p.Repair}
	if !p.RetryAt.IsZero() {
		o.RetryAfter, o.backoff = p.RetryAt.Sub(rec.CreatedAt), true
	}
	return o
}

// childOutcome returns the outcome in a SubworkflowCompleted. Older records have no merged output.
func childOutcome(p *history.Payload) ChildEnded {
	if p.Failed {
		return ChildEnded{Status: Failed, Error: p.Error, Code: p.Code, Data: p.Data}
	}
	e := ChildEnded{Status: Completed, FinalState: p.MergedOutput, Result: p.ChildResult.Value, DefinitionHash: p.ChildDefinitionHash}
	if e.FinalState == nil {
		e.FinalState = p.ChildFinalState
	}
	return e
}

func first(recs ...*history.Record) *history.Record {
	for _, r := range recs {
		if r != nil {
			return r
		}
	}
	return nil
}

func object(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// matchRecorded reports whether the history already holds a record that the machine produces. A command that differs from the
// recorded one ends the run (spec: execution, 10.3).
func (m *Machine) matchRecorded(kind history.Kind, name history.Name, p history.Payload) bool {
	r := m.recorded
	if kind == history.Event {
		if r.comparison != nil {
			r.comparison.event(r.base+r.next, name, &p)
		}
		if r.next < len(r.script) {
			return true
		}
		id := eventID{name, p.NodeID}
		if r.tail[id] > 0 {
			r.tail[id]--
			r.tailLeft--
			return true
		}
		return false
	}
	if r.next == len(r.script) {
		r.comparison = nil // the records that follow are new
		return false
	}
	want := r.script[r.next]
	if want.Name == name && want.Payload.NodeID == p.NodeID {
		r.next++
		if r.comparison != nil {
			r.comparison.command(&want, &p)
		}
		return true
	}
	m.mismatch(want, name, &p)
	return false
}

func (m *Machine) mismatch(want history.Record, name history.Name, p *history.Payload) {
	r, nodeID := m.recorded, p.NodeID
	text := fmt.Sprintf("command index %d: the history has %s, the definition leads to %s",
		r.base+r.next+1, identity(want.Name, want.Payload.NodeID), identity(name, nodeID))
	if name == history.FailNode {
		text += ": " + p.Message
	}
	m.recorded = nil
	m.records, m.effects = nil, nil
	m.setNow(m.present)
	m.put(history.Event, history.ExecutionFailed, history.Payload{
		Error: text, Code: string(problem.Nondeterminism),
		Context: &history.MismatchContext{
			Expected: history.CommandIdentity{Name: want.Name, Seq: want.Seq, NodeID: want.Payload.NodeID},
			Actual:   history.CommandIdentity{Name: name, NodeID: nodeID},
		},
	})
	m.failure = failure{Message: string(problem.Nondeterminism) + ": " + text, Code: string(problem.Nondeterminism), NodeID: nodeID}
	m.fatal = nil
	m.end(Failed)
}

func identity(name history.Name, nodeID string) string {
	if nodeID == "" {
		return string(name)
	}
	return string(name) + "(" + nodeID + ")"
}

// superseded removes the records of a foreign history that later records made void: everything between two answers to the same interrupt,
// and a failure of a node that was completed afterwards (spec: execution, 10.9).
func superseded(records []history.Record) []history.Record {
	out := make([]history.Record, 0, len(records))
	answered := map[string]int{}
	failed := map[string]int{}
	for _, rec := range records {
		id := rec.Payload.NodeID
		if rec.Kind == history.Command {
			switch rec.Name {
			case history.ScheduleNode:
				delete(answered, id)
				delete(failed, id)
			case history.ResumeInterrupt:
				if at, ok := answered[id]; ok {
					out = out[:at]
					undone := func(_ string, i int) bool { return i >= at }
					maps.DeleteFunc(answered, undone)
					maps.DeleteFunc(failed, undone)
				}
				answered[id] = len(out)
			case history.FailNode:
				failed[id] = len(out)
			case history.CompleteNode:
				if at, ok := failed[id]; ok {
					out = append(out[:at], out[at+1:]...)
					delete(failed, id)
				}
			}
		}
		out = append(out, rec)
	}
	return out
}
