package machine

import (
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
)

// Records of another engine are used as recorded and never evaluated again: its jq differs in regular expressions, the order of fields and
// the text of numbers, so the same program may give another result there (spec: execution, 4.5).

// noteState keeps the state that another engine recorded for the command before it. A replay by that engine repeats states; the first one counts.
func (r *recorded) noteState(rec *history.Record) {
	n := len(r.script)
	if rec.Name != history.StateUpdated || !rec.Foreign || n == 0 || r.states[n] != nil {
		return
	}
	if last := &r.script[n-1]; last.Name == history.CompleteNode && last.Payload.NodeID == rec.Payload.NodeID {
		r.states[n] = rec.Payload.State
	}
}

// recordedNext returns the next command of the history if another engine wrote it and it belongs to the token.
func (m *Machine) recordedNext(t *token) *history.Record {
	if !m.repeating() || !t.writesScript() {
		return nil
	}
	if rec := &m.recorded.script[m.recorded.next]; rec.Foreign {
		return rec
	}
	return nil
}

// recordedEnd returns how another engine ended the visit that the token has begun: a CompleteNode or FailNode, nil if it did not.
func (m *Machine) recordedEnd(t *token) *history.Payload {
	rec := m.recordedNext(t)
	if rec == nil || rec.Payload.NodeID != t.node.ID || rec.Name != history.CompleteNode && rec.Name != history.FailNode {
		return nil
	}
	return &rec.Payload
}

// recordedState returns the state that another engine recorded after the CompleteNode that has just been repeated, nil if it
// recorded no update. A branch sees more than its own updates, so it merges them as usual; a comparison derives all states.
func (m *Machine) recordedState(t *token) map[string]any {
	if m.recorded == nil || m.recorded.comparison != nil || t.block != nil {
		return nil
	}
	return m.recorded.states[m.recorded.next]
}

// recordedTarget returns the node that followed a switch in another engine, nil if the history does not contain it. It reads the next
// ScheduleNode, because the target is not recorded. In a branch, that may be the entry of the next branch.
func (m *Machine) recordedTarget(t *token) *definition.Node {
	rec := m.recordedNext(t)
	if rec == nil || rec.Name != history.ScheduleNode {
		return nil
	}
	c := t.node.Switch
	listed := c.Default == rec.Payload.NodeID
	for _, k := range c.Cases {
		if t.block != nil && k.Target == t.block.node.Next.ID {
			return nil
		}
		listed = listed || k.Target == rec.Payload.NodeID
	}
	if !listed || t.block != nil && c.Default == t.block.node.Next.ID {
		return nil
	}
	return m.prog.Node(rec.Payload.NodeID)
}

// recordedInput returns the input of a delegate that another engine recorded with its request.
func (m *Machine) recordedInput(t *token) map[string]any {
	if m.recorded == nil {
		return nil
	}
	if q := m.recorded.of(t).request(1); q != nil && q.Foreign {
		return q.Payload.DelegateInput
	}
	return nil
}

// childRecorded reports whether another engine recorded the end of the subworkflow that the token begins.
func (m *Machine) childRecorded(t *token) bool {
	if m.recorded == nil {
		return false
	}
	child := m.recorded.of(t).child
	return child != nil && child.Foreign
}
