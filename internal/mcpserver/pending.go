package mcpserver

import (
	"reflect"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

const (
	// maxFull is how many entries of pending are told in full. A host that has dealt with them is told of the next.
	maxFull = 8
	// smallInput is up to how many bytes a delegate's input stands in its entry as well as at the top of the answer.
	smallInput = 4096
)

// putPending puts everything that a run waits for, and the call that takes it further.
func putPending(m *members, run told) {
	if run.Status.Terminal() {
		return
	}
	if shown := run.shown(); len(shown) > 0 {
		first, next, brief := firstPending(run.Run), run.actionable(), false
		entries := make([]members, len(shown))
		for i, p := range shown {
			if i < maxFull || p == first || p == next {
				entries[i] = encodePending(run.Run, p, first)
			} else {
				entries[i], brief = encodeBriefly(run.Run, p), true
			}
		}
		m.put("pending", entries)
		if brief || run.node != "" {
			m.put("pending_total", float64(len(run.Pending)))
		}
	}
	m.put("next", nextCall(run))
}

// encodeBriefly is one entry of pending without what is to be done, which workflow_status tells of one node.
func encodeBriefly(run *graph.Run, p *graph.Pending) members {
	m := members{{"kind", string(p.Kind)}}
	if p.ExecutionID != run.ExecutionID {
		m.text("execution_id", p.ExecutionID)
	}
	m.text("node_id", p.NodeID)
	m.text("node_type", p.NodeType)
	putName(&m, p)
	if isAttempt(p) && !p.Host {
		m.put("performed_by", "engine")
	}
	m.number("attempt", int64(p.Attempt))
	putSpan(&m, p.Span)
	m.instant("deadline", p.Deadline)
	m.instant("block_deadline", p.BlockDeadline)
	m.put("brief", true)
	return m
}

// encodePending is one entry of pending in full. State and a large delegate_input stand at the top of the answer already
// where they are the same; large values are not sent twice.
func encodePending(run *graph.Run, p, first *graph.Pending) members {
	m := members{{"kind", string(p.Kind)}}
	if p.ExecutionID != run.ExecutionID {
		m.text("execution_id", p.ExecutionID)
	}
	m.text("node_id", p.NodeID)
	m.text("node_type", p.NodeType)
	putName(&m, p)
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
	m.number("timeout_ms", p.Timeout.Milliseconds())
	m.instant("deadline", p.Deadline)
	m.instant("block_deadline", p.BlockDeadline)
	m.instant("due_at", p.Due)
	return m
}

// putName puts what names the wait among all runs, once, under the name by which it is handed in.
func putName(m *members, p *graph.Pending) {
	switch {
	case p.IdempotencyKey != "":
		m.text("idempotency_key", p.IdempotencyKey)
	case p.Kind == machine.WaitInterrupt:
		m.text("interrupt_id", p.ID)
	default:
		m.text("id", p.ID)
	}
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
		if !first || jsonvalue.Size(p.DelegateInput, smallInput) <= smallInput {
			m.object("delegate_input", p.DelegateInput)
		}
		m.text("delegate_correlation_id", p.CorrelationID)
		m.text("external_task_id", p.ExternalTaskID)
	case machine.WaitInterrupt:
		m.text("agent_id", p.AgentID)
		m.text("external_task_id", p.ExternalTaskID)
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
