package machine

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
)

// walk moves a token from node to node until it waits, forks or ends.
func (m *Machine) walk(t *token, n *definition.Node) {
	for n != nil && t.phase == live && !m.ended() {
		m.noteMove(t, n)
		if t.block != nil && n == t.block.node.Next {
			m.branchSucceeded(t)
			return
		}
		if m.stretchExhausted() {
			m.endStretch(t, n)
			return
		}
		n = m.visit(t, n)
	}
}

// noteMove reports that a token continues to a node.
func (m *Machine) noteMove(t *token, to *definition.Node) {
	if m.pace.again { // it moved to the node at the end of the previous stretch
		m.pace.again = false
		return
	}
	if m.cfg.Moves == nil {
		return
	}
	from := t.node
	if t.rollback != nil {
		from = m.prog.Node(t.undoes().Node)
	}
	if from == nil && t.block != nil {
		from = t.block.node
	}
	if from != nil {
		m.cfg.Moves(from, to)
	}
}

// ended reports whether the run has ended, must end, or has abandoned its walk.
func (m *Machine) ended() bool { return m.status.Terminal() || m.fatal != nil || m.stopped }

// continues reports whether a token continues after its node has completed: the resulting state has not failed it.
func (m *Machine) continues(t *token) bool { return t.phase == live && t.rollback == nil && !m.ended() }

// visit schedules a node and begins it. It returns the next node if the node completed at once.
func (m *Machine) visit(t *token, n *definition.Node) *definition.Node {
	if m.steps >= m.cfg.MaxVisits && !m.repeating() && t.rollback == nil { // a rollback may exceed it: its length is bounded
		m.fatal = &failure{
			Reason:  reasonOrchestration,
			Message: "the run has reached its limit of node visits; a loop may never end",
			Code:    string(problem.StepBudgetExceeded), NodeID: n.ID,
		}
		return nil
	}
	if m.fatal = m.limitReached(n.ID); m.fatal != nil {
		return nil
	}
	m.correct(t)
	m.countVisit()
	m.steps++
	m.visits[n.Index]++
	if t.rollback == nil { // a caught failure may continue within the loops
		m.leaveLoops(t, n)
	}
	t.node, t.visit, t.limit = n, m.visits[n.Index], m.limitOf(t, n)
	m.command(t, history.ScheduleNode, history.Payload{NodeID: n.ID})
	m.event(history.NodeScheduled, m.scheduled(t))
	if m.ended() {
		return nil
	}
	if n.Map != nil {
		return m.beginMap(t)
	}
	switch n.Type {
	case definition.Start:
		return m.startNode(t)
	case definition.End:
		m.endNode(t)
		return nil
	case definition.Step, definition.LLMCall, definition.ToolCall:
		return m.beginActivity(t)
	case definition.Switch:
		return m.switchNode(t)
	case definition.Interrupt:
		return m.beginInterrupt(t)
	case definition.Parallel:
		return m.beginParallel(t)
	case definition.Wait:
		return m.beginWait(t)
	case definition.SetState:
		return m.setStateNode(t)
	case definition.Subworkflow:
		return m.beginSubworkflow(t)
	case definition.AgentDelegate:
		return m.beginDelegate(t)
	}
	panic(fmt.Sprintf("machine: no case for node type %q", n.Type)) // Compile rejects unknown types
}

// correct sets the state that a fork was given for this point.
func (m *Machine) correct(t *token) {
	if m.recorded == nil || t.block != nil {
		return
	}
	state := m.recorded.corrections[m.recorded.next]
	if state == nil {
		return
	}
	delete(m.recorded.corrections, m.recorded.next)
	t.view = state
	m.event(history.StateUpdated, history.Payload{State: state, Correction: true})
}

// repeating reports whether recorded commands remain to be repeated, to which the limits of this process do not apply.
func (m *Machine) repeating() bool {
	return m.recorded != nil && m.recorded.next < len(m.recorded.script)
}

// fact begins the payload of a fact about the token's node. The visit is written from the second on.
func (m *Machine) fact(t *token) history.Payload {
	return history.Payload{NodeID: t.node.ID, Visit: recordedVisit(t.visit)}
}

// waitFor makes the token wait.
func (m *Machine) waitFor(t *token, w *wait) {
	w.Since = m.now
	t.wait = w
	if w.counts() {
		m.open++
	}
	m.noteTimers(t)
}

// noteTimers reports a change of timers if the token has one.
func (m *Machine) noteTimers(t *token) {
	key, _ := t.timer()
	queue, _ := m.queueTimer(t)
	limit, _ := t.limitTimer()
	if key != "" || queue != "" || limit != "" {
		m.timersDirty = true
	}
}

// stopWaiting ends a token's wait.
func (m *Machine) stopWaiting(t *token) {
	if t.wait == nil {
		return
	}
	if m.pace.at == t {
		m.pace.at = nil
	}
	m.noteTimers(t)
	if t.wait.Task != nil || t.wait.rests() {
		m.timersDirty = true
	}
	if t.wait.counts() {
		m.open--
	}
	t.wait = nil
}

// completion holds the recorded values of a node's completion.
type completion struct {
	output  map[string]any // CompleteNode.output
	delta   map[string]any // merged into the state; nil repeats the state
	overlay bool
	// checkpoint is false where the protocol writes no checkpoint (spec: execution, 9.2).
	checkpoint bool
}

// complete writes CompleteNode, merges the delta and writes StateUpdated and, if due, a checkpoint. It returns the
// successor, or nil if the state became invalid and the token failed.
func (m *Machine) complete(t *token, c completion) *definition.Node {
	n := t.node
	if t.item() {
		m.itemEnded(t, c.output, nil)
		return nil
	}
	t.remember(c.output)
	m.command(t, history.CompleteNode, history.Payload{NodeID: n.ID, Output: c.output})
	view, err := m.merged(t, c.delta, c.overlay)
	if err != nil {
		return m.failErr(t, reasonOrchestration, err)
	}
	before := t.view
	t.view = view
	if m.wrote(t, c.delta); n.Type == definition.Interrupt {
		t.written = nil // the person who answered has seen the rest
	}
	var bad *failure
	if len(c.delta) > 0 || t.unchecked { // otherwise the view is unchanged, and valid
		bad = m.invalidState(t, n.ID)
		t.unchecked = false
	}
	m.push(t, item{
		Update: true, NodeID: n.ID, Delta: c.delta, Overlay: c.overlay, Valid: bad == nil,
		Checkpoint: c.checkpoint, Span: t.span(),
	})
	if bad != nil {
		if by, _ := catcher(t, bad); by == t {
			t.view = before // without the output that breaks the state
		}
		return m.failToken(t, bad)
	}
	if t.rollback != nil {
		return m.undone(t)
	}
	if n.NextErr != nil {
		return m.failErr(t, reasonOrchestration, n.NextErr)
	}
	return n.Next
}

// merged returns the token's view with a delta applied.
func (m *Machine) merged(t *token, delta map[string]any, overlay bool) (map[string]any, error) {
	recorded := m.recordedState(t)
	switch {
	case recorded != nil:
		return recorded, nil
	case len(delta) == 0:
		return t.view, nil
	case overlay:
		return definition.OverlayState(t.view, delta), nil
	default:
		return m.prog.State.Apply(t.view, delta)
	}
}

// invalidState returns the failure of a view that breaks the state_schema.
func (m *Machine) invalidState(t *token, nodeID string) *failure {
	if t.rollback != nil && t.rollback.Broken {
		return nil
	}
	if vs := m.prog.State.Validate(t.view); len(vs) > 0 {
		return &failure{
			Reason: reasonOrchestration, Code: string(problem.StateInvalid), NodeID: nodeID,
			Message: "the state breaks state_schema: " + jsonschema.Text(vs),
		}
	}
	return nil
}
