package machine

import (
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
)

// A caught failure (the extensions catch and on_timeout) is recorded by FailNode, with the node that catches it and the node where the run
// continues. A StateUpdated follows, with the error if the catch names a field for it, and then the rollback, if the catch has one.

// catcher returns the token that catches the failure of a token's node, and its catch: the token itself, or the owner of a parallel block
// that fails because its join needs all branches. It returns nil without a catch.
func catcher(t *token, f *failure) (by *token, k *definition.Catch) {
	if t.node == nil {
		return nil, nil
	}
	if k = t.node.CaughtBy(f.Code); k != nil {
		return t, k
	}
	return catcherAround(t, f)
}

// catcherAround is catcher, except for the token itself.
func catcherAround(t *token, f *failure) (by *token, k *definition.Catch) {
	for by = t; by.block != nil && by.block.node.Parallel.Join == definition.JoinAll; {
		by = by.block.owner
		if k = by.node.CaughtBy(f.Code); k != nil {
			return by, k
		}
	}
	return nil, nil
}

// continueCaught puts a caught failure into the state and returns the node where the token continues. A token whose state cannot hold the error
// fails.
func (m *Machine) continueCaught(t *token, f *failure, k *definition.Catch) *definition.Node {
	var delta map[string]any
	if k.As != "" {
		delta = map[string]any{k.As: f.value()}
	}
	view, err := m.merged(t, delta, false)
	if err != nil {
		return m.failUncaught(t, &failure{Reason: reasonOrchestration, Message: err.Error(), NodeID: t.node.ID})
	}
	t.view = view
	m.wrote(t, delta)
	bad := m.invalidState(t, t.node.ID)
	t.unchecked = false
	m.push(t, item{Update: true, NodeID: t.node.ID, Delta: delta, Valid: bad == nil, Checkpoint: true, Span: t.span()})
	if bad != nil {
		return m.failUncaught(t, bad)
	}
	if k.Rollback {
		return m.rollBack(t, &rollback{Reason: RollbackCatch, Failure: f, Node: t.node.ID, Visit: t.visit, Target: k.Target.ID})
	}
	return k.Target
}

// failUncaught fails a token without a catch, because a catch caused the failure.
func (m *Machine) failUncaught(t *token, f *failure) *definition.Node {
	m.asWritten(t, f)
	p := f.payload()
	p.Visit = t.failedVisit()
	if by, k := catcherAround(t, f); k != nil {
		p.CaughtBy, p.Target = by.node.ID, k.Target.ID
	}
	m.command(t, history.FailNode, p)
	m.tokenFailed(t, f)
	return nil
}

// value returns a caught failure as written to the state.
func (f *failure) value() map[string]any {
	v := map[string]any{"code": f.Code, "message": f.Message, "node": f.NodeID}
	if f.Attempts > 0 {
		v["attempts"] = float64(f.Attempts)
	}
	if f.Data != nil {
		v["data"] = f.Data
	}
	return v
}

// attempts counts the attempts of an activity, delegate or subworkflow so far, 0 for other waits.
func (w *wait) attempts() int {
	if w == nil {
		return 0
	}
	switch w.Kind {
	case WaitActivity, WaitDelegate, WaitBackoff, WaitChild:
		return max(w.Attempt, 1)
	}
	return 0
}
