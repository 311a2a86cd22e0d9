package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
)

// acceptOutcome finds the attempt of an outcome, and rejects a result that the host can correct.
func (m *Machine) acceptOutcome(o Outcome) (*token, error) {
	t, err := m.awaited(o)
	switch {
	case err != nil && o.Host:
		return nil, m.namingOwner(o, err)
	case err == nil && o.submitted():
		err = m.checkSubmitted(t, o)
	}
	return t, err
}

// submitted reports whether the outcome is a host's result.
func (o *Outcome) submitted() bool { return o.Host && o.OK }

// takeOutcome applies an outcome.
func (m *Machine) takeOutcome(t *token, o Outcome) {
	m.writeSteps(t, o.Steps)
	o, delta, fatal := asRecorded(t.node, o)
	if fatal == nil && o.OK {
		m.takeOutput(t, o, delta)
		return
	}
	m.resumed = m.resumed && !o.Host
	if fatal != nil && t.item() { // its failure must be recorded: an item has no FailNode
		o.OK, o.Final, o.Error, o.Code, fatal = false, true, fatal.Error(), codeOf(fatal), nil
	}
	if fatal != nil {
		m.walk(t, m.failErr(t, reasonOrchestration, fatal))
		return
	}
	m.attemptFailed(t, o)
}

// takeOutput applies the outcome of an attempt that succeeded.
func (m *Machine) takeOutput(t *token, o Outcome, delta map[string]any) {
	m.resumed = m.resumed && !o.Host
	m.attemptSucceeded(t, o, delta)
}

// asRecorded returns an outcome as it is recorded: an output that breaks output_schema is a failure. delta is the state update
// of a success.
func asRecorded(n *definition.Node, o Outcome) (recorded Outcome, delta map[string]any, fatal error) {
	if o.OK {
		var violation string
		if delta, violation, fatal = activityOutput(n, o.Output); violation != "" {
			o.OK, o.Error, o.Code = false, violation, string(problem.OutputSchemaViolation)
		}
	}
	if !o.OK && o.Code == "LLM_OUTPUT_VALIDATION_FAILED" && n.Type == definition.LLMCall {
		o.Code = string(problem.OutputSchemaViolation)
	}
	return o, delta, fatal
}

// awaited finds the token that an outcome is for.
func (m *Machine) awaited(o Outcome) (*token, error) {
	if !o.Host {
		if t := m.find(func(t *token) bool {
			return t.wait.counts() && !t.wait.Host && !t.wait.Queued && !t.wait.rests() && t.key() == o.Key
		}); t != nil {
			if len(o.Steps) > 0 {
				err := t.checkSteps(o.Index, o.Steps)
				return t, err
			}
			return t, nil
		}
		return nil, problem.New(problem.SubmitNotAwaiting, "attempt %s is not pending", o.Key)
	}
	at := problem.Place{ExecutionID: m.cfg.ExecutionID, NodeID: o.NodeID}
	if m.prog.Node(o.NodeID) == nil {
		at.NodeID = "" // not a node
	}
	first := m.find(func(t *token) bool { return t.wait.counts() && t.wait.Host })
	if first == nil {
		if e := m.betweenAttempts(o); e != nil {
			return nil, e.WithPlace(at)
		}
		return nil, problem.New(problem.SubmitNotAwaiting, "the run is %s and does not await an activity of the host", m.Status()).WithReason(problem.NotAwaiting).
			WithPlace(at).WithHint("Ask Runner.Status for the current waits.")
	}
	named := m.find(func(t *token) bool { return t.wait.counts() && t.wait.Host && t.node.ID == o.NodeID })
	if named == nil {
		e := m.notAwaited(o.NodeID).WithPlace(at)
		if why := m.unwanted(o.NodeID); why != "" {
			e.Message = why + ": " + e.Message
			e = e.WithHint("Nothing was changed. Stop that work; its outcome is not needed. %s", e.Hint)
		}
		if ended := m.betweenAttempts(o); ended != nil {
			e.Message += ": " + ended.Message
		}
		return nil, e
	}
	match := m.find(func(t *token) bool {
		if !t.wait.counts() || !t.wait.Host || t.node.ID != o.NodeID {
			return false
		}
		if t.item() && o.IdempotencyKey != m.cfg.ExecutionID+":"+t.key() {
			return false // only the key identifies an item
		}
		// The key identifies the attempt, and with it the branch.
		return sameSpan(t.span(), o.Span) || o.Span == nil && o.IdempotencyKey == m.cfg.ExecutionID+":"+t.key()
	})
	if match == nil && (o.Span == nil || named.item()) && o.IdempotencyKey != "" {
		match = named // its key is rejected below
	}
	if match == nil && named.item() {
		return nil, problem.New(problem.SubmitValidationError, "outcome must have an idempotency key: node %q has several items", o.NodeID).
			WithPlace(at).WithHint("Send the idempotency key of the item from pending.")
	}
	if match == nil {
		message := fmt.Sprintf("outcome must name the parallel branch of node %q", o.NodeID)
		if o.Span != nil {
			message = fmt.Sprintf("node %q is not awaited in the parallel branch %q", o.NodeID, o.Span.BranchName)
		}
		e := problem.New(problem.SubmitParallelMismatch, "%s", message).WithReason(problem.NotAwaiting).WithPlace(at)
		if named.span() == nil {
			return nil, e.WithHint("Leave the parallel span out: the node is not in a parallel branch.")
		}
		return nil, e.WithHint("Send the idempotency key of the pending activity, or its parallel span: its branch is %q.", named.span().BranchName)
	}
	if o.IdempotencyKey != "" && o.IdempotencyKey != m.cfg.ExecutionID+":"+match.key() {
		e := problem.New(problem.SubmitNotAwaiting, "idempotency key %q does not belong to the pending attempt", o.IdempotencyKey).WithReason(problem.NotAwaiting).WithPlace(at)
		if match.item() { // with the key of another item, the outcome would count for that item
			return nil, e.WithHint("Send the idempotency key of the item from pending. An attempt whose key is no longer in pending needs no outcome.")
		}
		return nil, e.WithHint("Submit the outcome of the current attempt, %d of node %q, with the key %q. An attempt whose key is no longer in pending needs no outcome.",
			match.wait.Attempt, o.NodeID, m.cfg.ExecutionID+":"+match.key())
	}
	return match, nil
}

// namingOwner adds to a rejection the attempt that the outcome's idempotency key belongs to, if another attempt pending at the host has it.
func (m *Machine) namingOwner(o Outcome, rejection error) error {
	t := m.find(func(t *token) bool {
		return t.wait.counts() && t.wait.Host && m.cfg.ExecutionID+":"+t.key() == o.IdempotencyKey
	})
	e, ok := problem.As(rejection)
	if t == nil || !ok {
		return rejection
	}
	whose := problem.Format("node %q", t.node.ID)
	if span := t.span(); span != nil {
		whose += problem.Format(" in branch %q", span.BranchName)
	}
	if t.item() {
		whose += fmt.Sprintf(", item %d", t.index)
	}
	told := *e
	told.Message += ": the idempotency key belongs to " + whose
	return told.WithHint("Nothing was changed. If the outcome is for %s, send its node id and this key; otherwise send the key of the right attempt from pending.", whose)
}

// betweenAttempts returns the rejection of an outcome whose node is in a back-off, nil otherwise.
func (m *Machine) betweenAttempts(o Outcome) *problem.Error {
	t := m.find(func(t *token) bool {
		return t.wait.Kind == WaitBackoff && t.node.ID == o.NodeID && (o.Span == nil || sameSpan(t.span(), o.Span))
	})
	if t == nil {
		return nil
	}
	end := "failed"
	if t.wait.LastCode == string(problem.Timeout) {
		end = "timed out"
	}
	return problem.New(problem.SubmitNotAwaiting, "attempt %d of node %q has %s; the next attempt starts at %s",
		t.wait.Attempt, t.node.ID, end, t.wait.Due.UTC().Format(time.RFC3339Nano)).WithReason(problem.NotAwaiting).
		WithHint("Nothing was changed. Ask Runner.Status with StatusRequest.Wait for the next attempt, and submit its outcome with its idempotency key.")
}

// unwanted returns why the work of a visited node is no longer needed: its map has ended, or a rollback has started. It returns "" if unknown.
func (m *Machine) unwanted(nodeID string) string {
	n := m.prog.Node(nodeID)
	if n == nil || m.visits[n.Index] == 0 || m.find(func(t *token) bool { return t.node == n }) != nil {
		return ""
	}
	switch {
	case n.Map != nil && m.rollsBack():
		return problem.Format("the run is being rolled back and does not need the items of node %q", nodeID)
	case n.Map != nil:
		return problem.Format("the map at node %q has ended and does not need its items", nodeID)
	case m.rollsBack():
		return problem.Format("the run is being rolled back and does not need node %q", nodeID)
	}
	return ""
}

// maxAwaitedNamed limits the node ids in a rejection.
const maxAwaitedNamed = 8

// notAwaited returns the rejection of an outcome whose node is not pending at the host, with the ids of the pending nodes.
func (m *Machine) notAwaited(nodeID string) *problem.Error {
	var ids []string
	for t := range m.waiting {
		if t.wait.counts() && t.wait.Host && !slices.Contains(ids, t.node.ID) {
			ids = append(ids, t.node.ID)
		}
	}
	if len(ids) == 1 {
		return problem.New(problem.SubmitNodeMismatch, "the run awaits node %q, not %q", ids[0], nodeID).WithReason(problem.NotAwaiting).
			WithHint("Submit the outcome of node %q.", ids[0])
	}
	named := make([]string, 0, maxAwaitedNamed)
	for _, id := range ids[:min(len(ids), maxAwaitedNamed)] {
		named = append(named, problem.Format("%q", id))
	}
	text := strings.Join(named, ", ")
	if left := len(ids) - len(named); left > 0 {
		text += fmt.Sprintf(" and %d more", left)
	}
	return problem.New(problem.SubmitNodeMismatch, "the run awaits nodes %s, not %q", text, nodeID).WithReason(problem.NotAwaiting).
		WithHint("Submit the outcome of one of these nodes, with its idempotency key from pending.")
}

func sameSpan(a, b *history.ParallelSpan) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// checkSubmitted rejects, without a record, a result that the host can correct: a wrong correlation id, or an output that
// breaks output_schema or would break the state. The attempt stays open.
func (m *Machine) checkSubmitted(t *token, o Outcome) error {
	at := problem.Place{ExecutionID: m.cfg.ExecutionID, NodeID: t.node.ID}
	if t.wait.Kind == WaitDelegate {
		takeDelegateIDs(&o)
		if o.CorrelationID != t.wait.Correlation {
			return problem.New(problem.SubmitValidationError, "correlation id must be %[2]q, not %[1]q", o.CorrelationID, t.wait.Correlation).
				WithPlace(at).WithHint("Send the correlation id %q.", t.wait.Correlation)
		}
	}
	delta, violation, fatal := activityOutput(t.node, o.Output)
	switch {
	case fatal != nil:
		return nil // the definition is wrong: the node fails
	case violation != "":
		return problem.New(problem.SubmitValidationError, "%s", problem.Excerpt(violation, problem.MaxText)).WithPlace(at).
			WithHint("Nothing was recorded, and attempt %d of %d is still open. Correct the result and send it again, or report a failure.",
				max(t.wait.Attempt, 1), m.maxAttempts(t.node))
	}
	return m.acceptable(t, delta, problem.SubmitValidationError, at)
}

// acceptable rejects a host's result or a signal that would break the state.
func (m *Machine) acceptable(t *token, delta map[string]any, code problem.Code, at problem.Place) error {
	view, err := m.prog.State.Apply(t.view, delta)
	if err != nil {
		return nil // the definition is wrong: the node fails
	}
	if vs := m.prog.State.Validate(view); len(vs) > 0 && (t.rollback == nil || !t.rollback.Broken) {
		e := problem.New(code, "the result would break state_schema: %s", problem.Excerpt(jsonschema.Text(vs), problem.MaxText)).WithPlace(at)
		return e.WithHint("Nothing was recorded. Correct the value and send it again.")
	}
	return nil
}

// takeDelegateIDs moves the two ids from a delegate's output to the outcome (spec: execution, 8.6).
func takeDelegateIDs(o *Outcome) {
	out, ok := o.Output.(map[string]any)
	if !ok {
		return
	}
	correlation, _ := out["delegateCorrelationId"].(string)
	task, _ := out["externalTaskId"].(string)
	if o.CorrelationID == "" {
		o.CorrelationID = correlation
	}
	if o.ExternalTaskID == "" {
		o.ExternalTaskID = task
	}
	clean := make(map[string]any, len(out))
	for k, v := range out {
		if k != "delegateCorrelationId" && k != "externalTaskId" {
			clean[k] = v
		}
	}
	o.Output = clean
}

// attemptSucceeded records the outcome, completes the node and walks on.
func (m *Machine) attemptSucceeded(t *token, o Outcome, delta map[string]any) {
	p := m.fact(t)
	p.Result = history.Some(delta)
	p.IdempotencyKey, p.Usage = o.IdempotencyKey, o.Usage
	if o.Host {
		p.NodeType = string(t.node.Type)
		t.locate(&p)
	}
	isDelegate := t.wait.Kind == WaitDelegate
	if isDelegate {
		p.Correlation, p.ExternalTask = t.wait.Correlation, o.ExternalTaskID
	}
	m.attemptEnded(t, history.ActivityCompleted, p)
	m.notePartial(t.node.ID, o.Usage)
	m.stopWaiting(t)
	m.walk(t, m.complete(t, completion{
		output: delta, delta: delta,
		checkpoint: isDelegate || o.Host || m.resumed || t.block != nil,
	}))
}
