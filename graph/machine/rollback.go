package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// A token keeps the completed visits of nodes with a compensation (the extension compensate). A rollback visits their compensations one after
// another, the newest first. Each is an ordinary visit, so a crash or a replay in between changes nothing. When a block or map ends, its
// token takes over the visits of the branches or items, also of dropped ones, in their order, which does not depend on time.

// RollbackReason is the reason why a run or a branch is rolled back.
type RollbackReason string

// The reasons of rollbacks.
const (
	RollbackCancel  RollbackReason = "cancel"  // the run was cancelled
	RollbackFailure RollbackReason = "failure" // the run fails
	RollbackCatch   RollbackReason = "catch"   // a failure was caught; the run or branch continues afterwards
)

// undo is a completed visit that a rollback undoes. It is stored in positions.
type undo struct {
	Node  string `json:"node"`
	Visit int    `json:"visit"`
	// Found holds the fields that the compensation sees besides the state, or nil.
	Found map[string]any `json:"found,omitempty"`
}

func (u *undo) key() string { return visitKey(u.Node, u.Visit) }

// rollback is the progress of a token's rollback. It is stored in positions.
type rollback struct {
	Reason RollbackReason `json:"reason"`
	// Total is the number of visits to undo at the start.
	Total int `json:"total"`
	// Broken reports that the state broke its schema when the rollback started; then it is not checked.
	Broken bool `json:"broken,omitempty"`
	// Failure is the cause, nil for a cancelled run; Cancel is the reason of the cancellation.
	Failure *failure `json:"failure,omitempty"`
	Cancel  string   `json:"cancel,omitempty"`
	// Node and Visit are where the failure was caught, Target is where the token continues.
	Node   string `json:"node,omitempty"`
	Visit  int    `json:"visit,omitempty"`
	Target string `json:"target,omitempty"`
}

// remember adds the completed visit of a node with a compensation.
func (t *token) remember(output map[string]any) {
	if t.node.Compensation != nil && t.node.Map == nil {
		t.done = append(t.done, undoOf(t.node, t.visit, map[string]any{"node": t.node.ID, "output": output}))
	}
}

func undoOf(n *definition.Node, visit int, found map[string]any) undo {
	u := undo{Node: n.ID, Visit: visit}
	if as := n.Compensation.As; as != "" {
		u.Found = map[string]any{as: found}
	}
	return u
}

// closeBlock ends the block that a token waits for, if any. The token then remembers the visits in it.
func (t *token) closeBlock() {
	b := t.inner
	if t.inner = nil; b == nil {
		return
	}
	for _, c := range b.tokens {
		c.closeBlock()
		t.done = append(t.done, c.done...)
		c.done = nil
	}
	if b.items == nil || b.node.Compensation == nil {
		return
	}
	it := b.items
	for i := range it.next {
		working := slices.ContainsFunc(b.tokens, func(c *token) bool { return c.index == i })
		if !working && it.failures[i] == nil {
			found := map[string]any{"node": b.node.ID, "output": it.outputs[i], "item": it.values[i]}
			t.done = append(t.done, undoOf(b.node, it.base+1+i, found))
		}
	}
}

// nodeState returns the state as the token's node sees it: for a compensation, with the output to undo.
func (t *token) nodeState() map[string]any {
	if t.rollback == nil || t.undoes().Found == nil {
		return t.view
	}
	return definition.OverlayState(t.view, t.undoes().Found)
}

// undoes returns the visit that the token's current compensation undoes.
func (t *token) undoes() *undo { return &t.done[len(t.done)-1] }

// compensation returns the node that undoes the newest visit that a token remembers.
func (m *Machine) compensation(t *token) *definition.Node {
	return m.prog.Node(t.undoes().Node).Compensation.Node
}

// rollBack begins a rollback, and returns the next node of the token.
func (m *Machine) rollBack(t *token, r *rollback) *definition.Node {
	if len(t.done) == 0 {
		return m.rolledBack(t, r)
	}
	r.Total = len(t.done)
	r.Broken = len(m.prog.State.Validate(t.view)) > 0
	t.rollback = r
	m.noteRunTimer()
	p := history.Payload{NodeID: t.node.ID, Reason: string(r.Reason), Compensations: r.Total}
	if r.Failure != nil {
		p.Code = r.Failure.Code
	}
	m.scriptEvent(t, history.RollbackStarted, p)
	return m.compensation(t)
}

// undone continues after a compensation.
func (m *Machine) undone(t *token) *definition.Node {
	t.done = t.done[:len(t.done)-1]
	if len(t.done) > 0 {
		return m.compensation(t)
	}
	r := t.rollback
	t.rollback = nil
	m.noteRunTimer()
	return m.rolledBack(t, r)
}

// rolledBack continues after a rollback, by its reason. It returns the next node of the token, or nil.
func (m *Machine) rolledBack(t *token, r *rollback) *definition.Node {
	switch r.Reason {
	case RollbackCatch:
		t.node, t.visit = m.prog.Node(r.Node), r.Visit
		return m.prog.Node(r.Target)
	case RollbackCancel:
		m.endCancelled(history.Payload{NodeID: t.node.ID, Reason: r.Cancel, Compensations: r.Total})
	default:
		node := ""
		if r.Total > 0 { // FailNode was written long before
			node = r.Failure.NodeID
		}
		m.compensated = r.Total
		m.endFailed(r.Failure, node)
	}
	return nil
}

// rollBackFailed ends the run by a failure, or rolls it back first. FailNode has been written.
func (m *Machine) rollBackFailed(f *failure) {
	if !m.prog.Rollback.OnFailure || m.main.node == nil {
		m.endFailed(f, "")
		return
	}
	m.walk(m.main, m.rollBack(m.main, &rollback{Reason: RollbackFailure, Failure: f}))
}

// compensationFailed ends the run, whatever the blocks around the token tolerate, because the effects are in an unknown state.
func (m *Machine) compensationFailed(t *token, f *failure) {
	m.stopWaiting(t)
	r := t.rollback
	why := "the run was cancelled"
	if r.Cancel != "" {
		why += ": " + r.Cancel
	}
	if of := r.Failure; of != nil {
		why = of.Message
		if of.NodeID != "" {
			why = problem.Format("%q failed: %s", of.NodeID, of.Message)
		}
	}
	m.fatal = &failure{
		Reason: reasonCompensation, Code: string(problem.CompensationFailed), NodeID: t.node.ID,
		Message: problem.Format("compensation %q of %q failed: %s; it ran because %s", t.node.ID, t.undoes().Node, f.Message, why),
	}
}

// rollsBack reports whether the run, or a branch of it, is being rolled back.
func (m *Machine) rollsBack() bool {
	for t := range m.living {
		if t.rollback != nil {
			return true
		}
	}
	return false
}

// maxLeftNamed limits the visits in the text of a run's end.
const maxLeftNamed = 8

// leftText ends all blocks of a run that ends, and lists the nodes that are not undone, or "".
func (m *Machine) leftText() string {
	var names []string
	m.main.closeBlock()
	for _, u := range slices.Backward(m.main.done) {
		if name := u.Node; u.Visit == 1 {
			names = append(names, name)
		} else {
			names = append(names, u.key())
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := "not compensated: " + strings.Join(names[:min(len(names), maxLeftNamed)], ", ")
	if more := len(names) - maxLeftNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// cancel ends the run on request (spec: execution, 7.4), or rolls it back first. The script that branches hold back is dropped. A
// cancel while a rollback runs ends the run at once.
func (m *Machine) cancel(in Cancel) {
	node := ""
	if t := m.find(func(*token) bool { return true }); t != nil {
		node = t.node.ID
	} else if m.main.node != nil {
		node = m.main.node.ID
	}
	p := history.Payload{NodeID: node, Reason: in.Reason}
	if m.feeding {
		m.record(history.Command, history.CancelExecution, p)
	} else {
		m.put(history.Command, history.CancelExecution, p)
	}
	stopped := m.rollsBack()
	m.abandonBelow(m.main)
	m.left, m.timersDirty = nil, true
	if m.prog.Rollback.OnCancel && !stopped && !in.KeepTasks && m.main.node != nil {
		m.main.closeBlock()
		m.walk(m.main, m.rollBack(m.main, &rollback{Reason: RollbackCancel, Cancel: in.Reason}))
		return
	}
	p.KeepTasks = in.KeepTasks
	if text := m.leftText(); stopped && !in.KeepTasks && text != "" {
		p.Reason = strings.TrimSpace(in.Reason + " (" + text + ")")
	}
	m.endCancelled(p)
}

// endCancelled writes ExecutionCancelled. CancelExecution has been written.
func (m *Machine) endCancelled(p history.Payload) {
	m.put(history.Event, history.ExecutionCancelled, p)
	m.reason, m.compensated = p.Reason, p.Compensations
	m.end(Cancelled)
}

// acceptCancel rejects a parent's cancel while a rollback runs, since it was already applied.
func (m *Machine) acceptCancel(in Cancel) (*token, error) {
	if in.ByParent && m.rollsBack() {
		return nil, problem.New(problem.CancelNotAllowed, "the run is being rolled back").
			WithPlace(problem.Place{ExecutionID: m.cfg.ExecutionID}).WithHint("Wait for the end of the rollback.")
	}
	return m.main, nil
}

// RollbackProgress is the progress of a rollback.
type RollbackProgress struct {
	Reason RollbackReason
	// Code and NodeID are those of the failure that led to it.
	Code, NodeID string
	// Undone of Total compensations have completed. Undoing is the visit that the next one undoes, "<node>#<visit>".
	Undone, Total int
	Undoing       string
}

// Rollbacks returns the rollbacks under way, in branch order.
func (m *Machine) Rollbacks() []RollbackProgress {
	var all []RollbackProgress
	for t := range m.living {
		if r := t.rollback; r != nil {
			p := RollbackProgress{Reason: r.Reason, Total: r.Total, Undone: r.Total - len(t.done), Undoing: t.undoes().key()}
			if r.Failure != nil {
				p.Code, p.NodeID = r.Failure.Code, r.Failure.NodeID
			}
			all = append(all, p)
		}
	}
	return all
}

// Undoing lists the visits that the rollbacks under way undo and have not undone yet.
func (m *Machine) Undoing() (visits []history.Visit) {
	for t := range m.living {
		if t.rollback != nil {
			for _, u := range t.done {
				visits = append(visits, history.Visit{NodeID: u.Node, Visit: u.Visit})
			}
		}
	}
	return visits
}

// fitsRollback checks the rollback of a token from a position.
func (m *Machine) fitsRollback(t *token) error {
	misfit := problem.New(problem.HistoryCorrupt, "the stored position does not fit the compensations")
	for i := range t.done {
		if n := m.prog.Node(t.done[i].Node); n == nil || n.Compensation == nil || t.done[i].Visit < 1 {
			return misfit
		}
	}
	r := t.rollback
	switch {
	case r == nil:
		return nil
	case t.phase != live, len(t.done) == 0, t.node != m.compensation(t), r.Total < len(t.done):
		return misfit
	case r.Reason == RollbackCatch:
		if m.prog.Node(r.Node) == nil || m.prog.Node(r.Target) == nil || r.Visit < 1 {
			return misfit
		}
	case t.block != nil, r.Reason == RollbackFailure && r.Failure == nil, r.Reason != RollbackFailure && r.Reason != RollbackCancel:
		return misfit
	}
	return nil
}

// remembers reports whether any visit can be undone.
func (m *Machine) remembers() (some bool) {
	m.main.each(func(t *token) bool {
		some = some || len(t.done) > 0
		return true
	})
	return some
}
