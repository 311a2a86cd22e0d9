package machine

import (
	"cmp"
	"strconv"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// subworkflow (spec: execution, 12.1). SubworkflowStarted is recorded before the driver looks for the child's definition, so
// a reference that cannot be resolved ends a subworkflow that has started.

func (m *Machine) beginSubworkflow(t *token) *definition.Node {
	c := t.node.Subworkflow
	if c.WorkflowRef == "" {
		return m.failErr(t, reasonSubworkflow, problem.New(problem.ConfigBlank, "workflow_ref of node %q is blank", t.node.ID))
	}
	var input map[string]any
	var err error
	if !m.childRecorded(t) {
		input, err = c.InputMapping.EvalAt(t.nodeState(), m.env())
	}
	if err != nil {
		return m.failErr(t, reasonSubworkflow, err)
	}
	w := &wait{Kind: WaitChild, Attempt: 1, Input: input, Child: m.childID(t), Version: m.versionOf(c)}
	m.command(t, history.StartSubworkflow, history.Payload{NodeID: t.node.ID, WorkflowRef: c.WorkflowRef, ChildExecutionID: w.Child})
	p := m.childFact(t, w)
	t.locate(&p)
	known := m.recorded != nil && m.recorded.of(t).started
	if known {
		w.From = m.recorded.of(t).from
	}
	m.event(history.SubworkflowStarted, p)
	m.waitFor(t, w)
	if !known {
		m.effects = append(m.effects, t.effect())
	}
	return nil
}

// versionOf returns the definition hash of a bound subworkflow, "" if it is not bound.
func (m *Machine) versionOf(c *definition.SubworkflowConfig) string {
	return cmp.Or(c.VersionPin, m.cfg.Subworkflows[c.WorkflowRef])
}

// childID returns the id of the child's run: the protocol's id for the first visit, with a number appended for later visits.
func (m *Machine) childID(t *token) string {
	id := m.cfg.ExecutionID + ":sub:" + t.node.ID
	if t.visit > 1 {
		id += "#" + strconv.Itoa(t.visit)
	}
	return id
}

func (m *Machine) childFact(t *token, w *wait) history.Payload {
	p := m.fact(t)
	p.WorkflowRef, p.ParentExecutionID, p.ChildExecutionID = t.node.Subworkflow.WorkflowRef, m.cfg.ExecutionID, w.Child
	return p
}

// acceptChild finds the token that waits for a subworkflow.
func (m *Machine) acceptChild(key string) (*token, error) {
	t := m.find(func(t *token) bool { return t.wait.Kind == WaitChild && t.key() == key })
	if t == nil {
		return nil, problem.New(problem.HistoryConflict, "subworkflow %s is not awaited", key)
	}
	return t, nil
}

// takeChild merges the final state of a subworkflow, or fails the node.
func (m *Machine) takeChild(t *token, e ChildEnded) {
	if e.Status != Completed {
		text, code := e.Error, e.Code
		if e.Status == Cancelled {
			code = cmp.Or(code, string(problem.SubworkflowCancelled))
			text = "the subworkflow was cancelled"
			if e.Error != "" {
				text += ": " + e.Error
			}
		}
		m.childFailed(t, text, code, e.Data)
		return
	}
	merged := object(e.FinalState)
	w := t.wait
	p := m.childFact(t, w)
	p.ChildFinalState, p.ChildResult, p.MergedOutput = merged, history.Some(e.Result), merged
	p.ChildDefinitionHash = e.DefinitionHash
	m.event(history.SubworkflowCompleted, p)
	m.stopWaiting(t)
	if t.item() {
		m.itemEnded(t, e.Result, nil)
		return
	}
	m.command(t, history.CompleteSubworkflow, history.Payload{NodeID: t.node.ID, WorkflowRef: p.WorkflowRef, ChildExecutionID: w.Child})
	m.walk(t, m.complete(t, completion{output: merged, delta: merged, checkpoint: true}))
}

// childFailed fails the node of a subworkflow that failed or could not be started.
func (m *Machine) childFailed(t *token, text, code string, data map[string]any) {
	p := m.childFact(t, t.wait)
	p.Failed, p.Error, p.Code, p.Data = true, text, code, data
	m.event(history.SubworkflowCompleted, p)
	m.walk(t, m.failToken(t, &failure{Reason: reasonSubworkflow, Message: text, Code: code, NodeID: t.node.ID, Data: data}))
}
