package runjson

import (
	"maps"
	"math"
	"reflect"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// smallInput is the largest input of a delegate, in bytes, that is repeated in its entry.
const smallInput = 4096

// Pending is one thing that a run waits for; first is First(run). The state and a large delegate_input are left out where they
// stand at the top of the answer already.
func Pending(run *view.Run, p, first *view.Pending) jsonvalue.Ordered {
	m := head(run, p)
	if p.MaxAttempts > 1 || p.Attempt > 1 {
		m.Number("attempt", int64(p.Attempt))
		m.Number("max_attempts", int64(p.MaxAttempts))
	}
	m.Text("last_error", p.LastError)
	m.Text("last_error_code", p.LastCode)
	putSpan(&m, p.Span)
	putTask(&m, p, p == first)
	if !sameState(p.State, run.State) {
		m.Object("state", p.State)
	}
	m.Number("timeout_ms", p.Timeout.Milliseconds())
	putDeadlines(&m, run, p)
	if p.Steps > 0 {
		m.Put("steps", float64(p.Steps))
		if agent, ok := agentsteps.StatusOf(p.FirstStep, p.Reconfigured, p.NewestStep, p.Totals); ok {
			m.Put("agent", agent.JSON())
		} else {
			m.Object("totals", p.Totals)
		}
	}
	m.Instant("due_at", p.Due)
	putSeconds(&m, "due_in_s", p.Due, run.Now)
	return m
}

func putDeadlines(m *jsonvalue.Ordered, run *view.Run, p *view.Pending) {
	m.Instant("deadline", p.Deadline)
	putSeconds(m, "deadline_in_s", p.Deadline, run.Now)
	m.Instant("block_deadline", p.BlockDeadline)
}

// putSeconds puts how many whole seconds are left until a time, counting one that has begun.
func putSeconds(m *jsonvalue.Ordered, name string, at, now time.Time) {
	if !at.IsZero() && !now.IsZero() {
		m.Put(name, math.Ceil(max(0, at.Sub(now).Seconds())))
	}
}

// isTimed reports whether an entry has an absolute time.
func isTimed(p view.Pending) bool {
	return !p.Deadline.IsZero() || !p.BlockDeadline.IsZero() || !p.Due.IsZero()
}

// Brief is Pending without the task, which workflow_status shows for one node.
func Brief(run *view.Run, p *view.Pending) jsonvalue.Ordered {
	m := head(run, p)
	m.Number("attempt", int64(p.Attempt))
	putSpan(&m, p.Span)
	putDeadlines(&m, run, p)
	m.Put("brief", true)
	return m
}

// Key has the fields of Brief that identify a wait, with its branch or item.
func Key(run *view.Run, p *view.Pending) jsonvalue.Ordered {
	m := jsonvalue.Ordered{{"node_id", p.NodeID}}
	if p.ExecutionID != run.ExecutionID {
		m.Text("execution_id", p.ExecutionID)
	}
	if p.Span != nil {
		m.Text("branch_name", p.Span.BranchName)
	}
	if p.Items > 0 {
		m.Put("item", float64(p.Item))
	}
	m.Text("idempotency_key", p.IdempotencyKey)
	return m
}

// head has the fields that identify a wait among all runs, under the names that calls take.
func head(run *view.Run, p *view.Pending) jsonvalue.Ordered {
	m := jsonvalue.Ordered{{"kind", string(p.Kind)}}
	if p.ExecutionID != run.ExecutionID {
		m.Text("execution_id", p.ExecutionID)
	}
	m.Text("node_id", p.NodeID)
	m.Text("node_type", p.NodeType)
	switch {
	case p.IdempotencyKey != "":
		m.Text("idempotency_key", p.IdempotencyKey)
	case p.Kind == machine.WaitInterrupt:
		m.Text("interrupt_id", p.ID)
	default:
		m.Text("id", p.ID)
	}
	if p.Items > 0 {
		m.Put("item", float64(p.Item))
		m.Put("items", float64(p.Items))
	}
	if (p.Kind == machine.WaitActivity || p.Kind == machine.WaitDelegate) && !p.Host {
		m.Put("performed_by", "engine")
	}
	if p.Queued {
		m.Put("queued", true)
	}
	if p.Limit != nil {
		m.Put("limit", Limit(p.Limit))
	}
	return m
}

// Limit is a shared limit: its class, and its bounds with the slots in use.
func Limit(u *history.LimitUse) jsonvalue.Ordered {
	l := jsonvalue.Ordered{{"class", u.Class}}
	if u.Concurrent > 0 {
		l.Put("at_once", float64(u.Concurrent))
		l.Put("in_use", float64(u.Slots()))
	}
	if u.PerSecond > 0 {
		l.Put("per_second", u.PerSecond)
	}
	return l
}

// putTask puts the task.
func putTask(m *jsonvalue.Ordered, p *view.Pending, first bool) {
	switch p.Kind {
	case machine.WaitActivity:
		config := p.Config
		if p.OutputSchema != nil {
			config = maps.Clone(config)
			delete(config, "output_schema") // it is a member of its own
		}
		m.Object("config", config)
		if p.OutputSchema != nil {
			m.Put("output_schema", p.OutputSchema)
		}
	case machine.WaitDelegate:
		m.Text("agent_id", p.AgentID)
		m.Text("protocol", p.Protocol)
		if !first || jsonvalue.Size(p.DelegateInput, smallInput) <= smallInput {
			m.Object("delegate_input", p.DelegateInput)
		}
		m.Text("delegate_correlation_id", p.CorrelationID)
		m.Text("external_task_id", p.ExternalTaskID)
	case machine.WaitInterrupt:
		m.Text("agent_id", p.AgentID)
		m.Text("external_task_id", p.ExternalTaskID)
		m.Text("prompt", p.Prompt)
		m.Text("prompt_ref", p.PromptRef)
		if calls := agentsteps.Approval(p.Show); calls != nil {
			m.Put("tool_calls", agentsteps.CallsJSON(calls))
		} else if p.Show != nil && !agentsteps.AsksPerson(p.Show) { // which has the question once more
			m.Put("show", p.Show)
		}
		m.Object("resume_schema", p.ResumeSchema)
	case machine.WaitSignal:
		m.Text("signal_name", p.SignalName)
	case machine.WaitChild:
		m.Text("child_execution_id", p.ChildExecutionID)
		m.Text("workflow_ref", p.WorkflowRef)
	}
}

func putDelegate(m *jsonvalue.Ordered, p *view.Pending) {
	m.Text("agent_id", p.AgentID)
	m.Text("protocol", p.Protocol)
	m.Object("delegate_input", p.DelegateInput)
}

func putSpan(m *jsonvalue.Ordered, span *history.ParallelSpan) {
	if span != nil {
		m.Put("parallel_span", Span(span))
	}
}

// Span is the branch of a parallel block.
func Span(span *history.ParallelSpan) jsonvalue.Ordered {
	return jsonvalue.Ordered{
		{"parallel_node_id", span.ParallelNodeID}, {"join_target_id", span.JoinTargetID},
		{"branch_name", span.BranchName}, {"branch_entry_node_id", span.BranchEntryNodeID},
	}
}

// sameState compares states that are mostly the same map.
func sameState(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() || jsonvalue.Equal(a, b)
}
