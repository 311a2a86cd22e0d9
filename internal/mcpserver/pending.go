package mcpserver

import (
	"reflect"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// putPending puts everything that a run waits for, and the call that takes it further.
func putPending(m *members, run *graph.Run) {
	if run.Status.Terminal() {
		return
	}
	if len(run.Pending) > 0 {
		first := firstPending(run)
		entries := make([]members, len(run.Pending))
		for i := range run.Pending {
			entries[i] = encodePending(run, &run.Pending[i], first)
		}
		m.put("pending", entries)
	}
	m.put("next", nextCall(run))
}

// encodePending is one entry of pending. State and delegate_input stand at the top of the answer already where they are
// the same; large values are not sent twice.
func encodePending(run *graph.Run, p, first *graph.Pending) members {
	m := members{{"kind", string(p.Kind)}}
	if p.ExecutionID != run.ExecutionID {
		m.text("execution_id", p.ExecutionID)
	}
	m.text("node_id", p.NodeID)
	m.text("node_type", p.NodeType)
	m.text("id", p.ID)
	if isAttempt(p) && !p.Host {
		m.put("performed_by", "engine")
	}
	if p.MaxAttempts > 1 || p.Attempt > 1 {
		m.number("attempt", int64(p.Attempt))
		m.number("max_attempts", int64(p.MaxAttempts))
	}
	m.text("last_error", p.LastError)
	m.text("last_error_code", p.LastCode)
	putSpan(&m, p.Span)
	putTask(&m, p, p == first)
	if !sameState(p.State, run.State) {
		m.object("state", p.State)
	}
	m.text("idempotency_key", p.IdempotencyKey)
	m.number("timeout_ms", p.Timeout.Milliseconds())
	m.instant("deadline", p.Deadline)
	m.instant("due_at", p.Due)
	return m
}

// putTask puts what is to be done.
func putTask(m *members, p *graph.Pending, first bool) {
	switch p.Kind {
	case machine.WaitActivity:
		m.object("config", without(p.Config, "output_schema", p.OutputSchema != nil))
		if p.OutputSchema != nil {
			m.put("output_schema", p.OutputSchema)
		}
	case machine.WaitDelegate:
		m.text("agent_id", p.AgentID)
		m.text("protocol", p.Protocol)
		if !first {
			m.object("delegate_input", p.DelegateInput)
		}
		m.text("delegate_correlation_id", p.CorrelationID)
	case machine.WaitInterrupt:
		m.text("interrupt_id", p.ID)
		m.text("prompt", p.Prompt)
		m.text("prompt_ref", p.PromptRef)
		m.object("resume_schema", p.ResumeSchema)
	case machine.WaitSignal:
		m.text("signal_name", p.SignalName)
	case machine.WaitChild:
		m.text("child_execution_id", p.ChildExecutionID)
		m.text("workflow_ref", p.WorkflowRef)
	}
}

// isAttempt tells activities and delegates, which the host or the engine performs, from other waits.
func isAttempt(p *graph.Pending) bool {
	return p.Kind == machine.WaitActivity || p.Kind == machine.WaitDelegate
}

// without gives m without a member that is shown elsewhere.
func without(m map[string]any, name string, shown bool) map[string]any {
	if _, ok := m[name]; !ok || !shown {
		return m
	}
	rest := make(map[string]any, len(m))
	for k, v := range m {
		if k != name {
			rest[k] = v
		}
	}
	return rest
}

// sameState compares states that are mostly the same map.
func sameState(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() || jsonvalue.Equal(a, b)
}
