package machine

import (
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// The reasons of FailNode (spec: execution, 2.5).
const (
	reasonActivity      = "activity_failed"
	reasonDelegate      = "delegate_failed"
	reasonSubworkflow   = "subworkflow_failed"
	reasonSwitch        = "switch_routing_failed"
	reasonWait          = "wait_failed"
	reasonSetState      = "set_state_failed"
	reasonOutputMapping = "output_mapping_jq_failed"
	reasonOutputSchema  = "output_schema_violated" // added: the result of the run
	reasonJoin          = "parallel_join_failed"
	reasonMap           = "map_failed"          // added: the items of a map
	reasonLoop          = "loop_failed"         // added: the rounds of a loop
	reasonInterrupt     = "interrupt_failed"    // added: not answered in time
	reasonCompensation  = "compensation_failed" // added: in a rollback
	reasonOrchestration = "orchestration_error"
)

// failNode fails a token at its node, and returns the node where the token continues if the failure is caught.
func (m *Machine) failNode(t *token, reason, message, code string) *definition.Node {
	return m.failToken(t, &failure{Reason: reason, Message: message, Code: code, NodeID: t.node.ID})
}

// failErr is failNode for an error.
func (m *Machine) failErr(t *token, reason string, err error) *definition.Node {
	f := &failure{Reason: reason, Message: err.Error(), Code: codeOf(err), NodeID: t.node.ID}
	if p, ok := problem.As(err); ok && !t.item() { // no record holds the value that an item has raised
		f.Data = p.Data
	}
	return m.failToken(t, f)
}

// codeOf returns the problem code of an error, or the code of all other failures.
func codeOf(err error) string {
	if p, ok := problem.As(err); ok && p.Code != "" {
		return string(p.Code)
	}
	return string(problem.EngineFailure)
}

// asWritten gives a failure the text of the FailNode that a replay repeats, since a catch copies the text into the state. So a release may
// reword failures. Some failures of older releases have no code; none has data.
func (m *Machine) asWritten(t *token, f *failure) {
	if m.recorded == nil {
		return
	}
	facts := m.recorded.of(t)
	if facts.usedFailures == len(facts.failures) {
		return
	}
	p := &facts.failures[facts.usedFailures].Payload
	facts.usedFailures++
	if p.Reason != f.Reason {
		return
	}
	f.Message, f.Data = p.Message, p.Data
	if p.Code == "" || p.Code == string(problem.ExpressionFailed) {
		f.Code = p.Code
	}
}

// failToken writes FailNode. Unless the failure is caught, it fails the token: the run on the main path, the branch otherwise. If the
// token's own node catches it, it returns the node where the token continues.
func (m *Machine) failToken(t *token, f *failure) *definition.Node {
	if t.item() {
		f.Attempts = t.wait.attempts()
		m.stopWaiting(t)
		m.itemEnded(t, nil, f)
		return nil
	}
	if t.rollback != nil {
		m.compensationFailed(t, f)
		return nil
	}
	m.asWritten(t, f)
	by, k := catcher(t, f)
	p := f.payload()
	p.Visit = t.failedVisit()
	if k != nil {
		p.CaughtBy, p.Target = by.node.ID, k.Target.ID
		f.Attempts = max(f.Attempts, t.wait.attempts())
	}
	m.stopWaiting(t)
	m.command(t, history.FailNode, p)
	if k != nil && by == t {
		return m.continueCaught(t, f, k)
	}
	m.tokenFailed(t, f)
	return nil
}

// tokenFailed ends the run, or the branch, by a failure. FailNode has been written.
func (m *Machine) tokenFailed(t *token, f *failure) {
	if t.block == nil {
		m.rollBackFailed(f)
	} else {
		m.branchFailed(t, f)
	}
}

// payload returns the payload of FailNode. By the protocol an orchestration_error has no nodeId: failedNodeId names the node.
func (f *failure) payload() history.Payload {
	p := history.Payload{NodeID: f.NodeID, Reason: f.Reason, Message: f.Message, Code: f.Code, Data: f.Data}
	if f.Reason == reasonOrchestration {
		p.NodeID, p.FailedNodeID = "", f.NodeID
	}
	return p
}

// failRun fails the run, whatever the join policies of its blocks tolerate. A limit, or a failed compensation, ends it without a rollback;
// any other failure, such as a merged state that breaks its schema or the deadline of the run, rolls it back first.
func (m *Machine) failRun(f *failure) {
	stopped := m.prog.Rollback.OnFailure || m.rollsBack()
	m.abandonBelow(m.main)
	m.main.closeBlock()
	m.stopWaiting(m.main)
	if m.main.rollback == nil && (f.Code == string(problem.StateInvalid) || f.Code == string(problem.RunTimeout)) {
		m.left = nil
		m.command(m.main, history.FailNode, f.payload())
		m.rollBackFailed(f)
		return
	}
	if text := m.leftText(); stopped && text != "" {
		f.Message += "; " + text
	}
	m.command(m.main, history.FailNode, f.payload())
	m.endFailed(f, "")
}

// endFailed writes ExecutionFailed, which names the node that failed if FailNode was not written just before.
func (m *Machine) endFailed(f *failure, node string) {
	if m.status.Terminal() {
		return
	}
	m.event(history.ExecutionFailed, history.Payload{Error: f.Message, Code: f.Code, Data: f.Data, FailedNodeID: node, Compensations: m.compensated})
	m.failure = *f
	m.end(Failed)
}

// end ends the run and drops all waits.
func (m *Machine) end(s Status) {
	if m.status.Terminal() {
		return
	}
	m.abandonBelow(m.main)
	m.main.inner, m.main.done, m.main.rollback = nil, nil, nil
	m.stopWaiting(m.main)
	m.kept = nil
	m.status = s
	m.noteRunTimer()
}

// abandonBelow drops the waits of t and of the branches below it.
func (m *Machine) abandonBelow(t *token) {
	t.each(func(c *token) bool {
		if c.inner != nil && (!c.inner.deadline.IsZero() || !c.limit.IsZero()) {
			m.timersDirty = true
		}
		if c.phase == live && c.wait != nil {
			m.abandon(c)
			m.stopWaiting(c)
			if c.item() {
				c = c.block.owner
			}
			if c.block != nil {
				m.left = append(m.left, leftBranch{c.block, c.index})
			}
		}
		return true
	})
}

// abandon abandons the effect and the task that a token waits for.
func (m *Machine) abandon(t *token) {
	if e := t.effect(); e != nil {
		m.abandoned = append(m.abandoned, e.Key())
	}
	m.dropTask(t)
}

// leftBranch is a branch that no longer waits, without an outcome.
type leftBranch struct {
	block *block
	index int
}

// noteLeft records as facts the branches that no longer wait, unless the script has recorded it: the block may still be open, or its end
// may be part of a script that is held back. Readers of the history thus know the open waits of the run.
func (m *Machine) noteLeft() {
	left := m.left
	m.left = nil
	if m.ended() {
		return
	}
	noted := map[leftBranch]bool{}
	for _, l := range left {
		owner := l.block.owner
		if decided := owner.inner != l.block; noted[l] || decided && owner.phase == live && owner.writesScript() {
			continue
		}
		noted[l] = true
		p := l.block.record()
		p.BranchName = l.block.node.Parallel.Branches[l.index].Name
		m.event(history.ParallelBranchCancelled, p)
	}
}

// writesScript reports whether the token's script is written at once.
func (t *token) writesScript() bool {
	return t.block == nil || (t.item() || t.block.head == t.index) && t.block.owner.writesScript()
}
