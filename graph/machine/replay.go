package machine

import (
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Replay rebuilds the machine of a run from its whole history, which another engine of the protocol may have begun. It applies the recorded
// outcomes, repeats the recorded commands, and stops at the end of the history. The next Ready returns the records that the history lacks.
//
// cfg and input apply if the history lacks them; this engine records both. An empty history is HISTORY_CORRUPT.
func Replay(prog *definition.Program, cfg Config, records []history.Record, input map[string]any, now time.Time) (*Machine, error) {
	return replay(prog, cfg, records, input, now, nil)
}

func replay(prog *definition.Program, cfg Config, records []history.Record, input map[string]any, now time.Time, c *comparison) (*Machine, error) {
	if len(records) == 0 {
		return nil, problem.New(problem.HistoryCorrupt, "the history of %q is empty", cfg.ExecutionID)
	}
	begun, deadline := now, time.Time{}
	if i := slices.IndexFunc(records, func(r history.Record) bool { return r.Name == history.ExecutionStarted }); i >= 0 {
		p := &records[i].Payload
		begun, deadline = records[i].CreatedAt, p.DeadlineAt
		if p.Branches != "" {
			cfg.Branches = BranchOrder(p.Branches)
			cfg.Parent, cfg.Depth, cfg.TraceParent, cfg.Priority = p.ParentExecutionID, p.Depth, p.TraceParent, p.Priority
			cfg.Subworkflows, cfg.Attempts = p.Subworkflows, p.Attempts
		}
		if p.Mode != "" {
			cfg.Mode = Mode(p.Mode)
		}
		if p.Input != nil {
			input = p.Input
		} else if state := firstState(prog, records); state != nil {
			input = state
		}
	}
	m := newMachine(prog, cfg)
	m.main.view, m.deadline = object(input), deadline
	m.seq = records[len(records)-1].Seq
	if m.takeEnd(records) {
		return m, nil
	}
	if c != nil {
		c.read(records)
	}
	if err := m.repeat(records, c, now, func() { m.begin(input, begun) }); err != nil {
		return nil, err
	}
	if c != nil {
		c.outcomes(m, records)
	}
	return m, nil
}

// Catchup applies to a restored machine the records that were written after its position.
func (m *Machine) Catchup(tail []history.Record, now time.Time) error {
	if len(tail) == 0 {
		m.setNow(now)
		return nil
	}
	if tail[0].Seq != m.seq+1 {
		return problem.New(problem.HistoryCorrupt, "the records after position %d begin with %d", m.seq, tail[0].Seq).
			WithPlace(problem.Place{ExecutionID: m.cfg.ExecutionID})
	}
	m.seq = tail[len(tail)-1].Seq
	m.stateSeq, m.stateAt = 0, nil
	if m.takeEnd(tail) {
		return nil
	}
	return m.repeat(tail, nil, now, func() {
		m.beginStretch()
		if t := m.pace.at; t != nil {
			m.walkOn(t)
			m.settle()
		}
	})
}

// repeat feeds records; begin makes the records before the first outcome. A cancel that led to a rollback does not end a wait, so the records
// before it are fed first.
func (m *Machine) repeat(records []history.Record, c *comparison, now time.Time, begin func()) error {
	limits := m.cfg.Limits
	part, rest := untilCancel(records, 0)
	for {
		m.present = now
		if len(rest) > 0 {
			m.present = rest[0].CreatedAt
			m.cfg.Limits.Short = func() bool { return true } // a cancelled walk stops at its records
		} else {
			m.cfg.Limits = limits
		}
		if len(part) > 0 || len(rest) == 0 {
			m.recorded = readRecorded(part, m.visitsOf, m.commands)
			m.recorded.comparison = c
			m.feeding = true
			begin()
			m.feed(m.present)
		}
		if m.stopped {
			return expr.ErrAbandoned
		}
		if len(rest) == 0 || m.status.Terminal() || m.cancelledElsewhere(rest) {
			m.cfg.Limits = limits
			return nil
		}
		cancelled := rest[0]
		begin = func() { m.repeatCancel(&cancelled) }
		part, rest = untilCancel(rest, 1)
	}
}

// untilCancel splits records before the first cancel at or after an index.
func untilCancel(records []history.Record, from int) (part, rest []history.Record) {
	for i := from; i < len(records); i++ {
		if records[i].Name == history.CancelExecution && !records[i].Foreign {
			return records[:i], records[i:]
		}
	}
	return records, nil
}

// cancelledElsewhere ends the run with a mismatch if the machine is not where the run was when it was cancelled.
func (m *Machine) cancelledElsewhere(rest []history.Record) bool {
	made := m.records
	m.effects, m.abandoned, m.dropped, m.left = nil, nil, nil, nil
	if m.recorded != nil {
		m.mismatch(m.recorded.script[m.recorded.next], history.CancelExecution, &rest[0].Payload)
		return true
	}
	if len(made) == 0 {
		return false
	}
	m.seq -= int64(len(made))
	m.recorded = readRecorded(rest, m.visitsOf, m.commands)
	m.mismatch(rest[0], made[0].Name, &made[0].Payload)
	return true
}

func (m *Machine) repeatCancel(rec *history.Record) {
	m.setNow(rec.CreatedAt)
	m.clock = m.now
	m.beginStretch()
	m.cancel(Cancel{Reason: rec.Payload.Reason})
	m.settle()
}

func (m *Machine) visitsOf(nodeID string) int {
	if n := m.prog.Node(nodeID); n != nil {
		return m.visits[n.Index]
	}
	return 0
}

// feed applies the recorded outcomes in the order of their records, until all waits are open or the run has ended.
func (m *Machine) feed(now time.Time) {
	for !m.ended() {
		var next resolution
		found := false
		for t := range m.living {
			if t.wait != nil || t.inner != nil {
				if r, ok := m.recorded.resolve(t); ok && (!found || r.seq < next.seq) {
					next, found = r, true
				}
			}
		}
		if r, ok := m.recorded.resolveKept(); ok && (!found || r.seq < next.seq) {
			next, found = r, true
		}
		if r, ok := m.recorded.resolveRun(); ok && (!found || r.seq < next.seq) {
			next, found = r, true
		}
		if !found {
			break
		}
		m.setNow(next.at)
		m.clock = m.now
		next.apply(m)
		m.settle()
		if m.recorded == nil {
			m.feeding = false
			return // a mismatch has ended the run
		}
	}
	r := m.recorded
	m.recorded = nil
	if r != nil {
		m.commands = r.base + len(r.script) + countCommands(m.records)
		if r.next < len(r.script) && !m.status.Terminal() {
			// The remaining commands follow from inputs that are not recorded as facts: the next inputs must repeat them.
			r.tail, r.facts = nil, nil
			r.comparison = nil
			m.recorded = r
		}
	}
	m.feeding = false
	m.setNow(now)
	m.timersDirty = true
}

func countCommands(records []history.Record) int {
	n := 0
	for i := range records {
		if records[i].Kind == history.Command {
			n++
		}
	}
	return n
}

// firstState returns the input of a run whose entry is a start node: the first recorded state.
func firstState(prog *definition.Program, records []history.Record) map[string]any {
	if prog.Entry.Type != definition.Start {
		return nil
	}
	for i := range records {
		if records[i].Name == history.StateUpdated {
			return records[i].Payload.State
		}
	}
	return nil
}

// takeEnd ends the machine if the history ends with a terminal event without a later command. Commands follow a failure that a join tolerated
// (spec: execution, 14.1, W-11).
func (m *Machine) takeEnd(records []history.Record) bool {
	for i := len(records) - 1; i >= 0; i-- {
		rec := &records[i]
		if rec.Kind == history.Command {
			return false
		}
		switch rec.Name {
		case history.ExecutionCompleted:
			m.result, m.partials, m.status = rec.Payload.Result.Value, rec.Payload.Partial, Completed
		case history.ExecutionFailed:
			m.compensated = rec.Payload.Compensations
			m.failure, m.status = failure{Message: rec.Payload.Error, Code: rec.Payload.Code, NodeID: rec.Payload.FailedNodeID, Data: rec.Payload.Data}, Failed
		case history.ExecutionCancelled:
			m.reason, m.compensated, m.status = rec.Payload.Reason, rec.Payload.Compensations, Cancelled
		default:
			continue
		}
		m.recorded = nil
		m.main.inner, m.main.wait, m.open, m.kept = nil, nil, 0, nil
		m.takeState(records)
		return true
	}
	return false
}

func (m *Machine) takeState(records []history.Record) {
	for i := len(records) - 1; i >= 0; i-- {
		if records[i].Name == history.StateUpdated {
			m.main.view = records[i].Payload.State
			return
		}
	}
}
