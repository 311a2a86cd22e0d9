package mcpserver

import (
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

// answerRun is the answer of a call that drove a run (spec: mcp-tools, 4): the protocol's members in the protocol's
// order, then what this engine adds.
func answerRun(run told) members {
	m := members{{"execution_id", run.ExecutionID}, {"status", string(run.Status)}}
	putEnd(&m, run.Run)
	if !run.Status.Terminal() {
		first := firstPending(run.Run)
		m.text("node_id", nodeOf(run.Run, first))
		m.object("state", run.State)
		if first != nil {
			putSpan(&m, first.Span)
			putDelegate(&m, first)
			m.text("delegate_correlation_id", first.CorrelationID)
			m.text("signal_name", first.SignalName)
		}
	}
	m.text("reason", run.Reason)
	m.text("activity_execution_mode", string(run.Mode))
	if run.Repeated {
		m.put("repeated", true)
	}
	putPending(&m, run)
	return m
}

// answerStatus is the answer of workflow_status (spec: mcp-tools, 6), followed by all that the last answer gave: whoever
// has lost that answer goes on from here.
func answerStatus(run told) members {
	m := members{{"execution_id", run.ExecutionID}, {"phase", string(phaseOf(run.Status))}}
	first := firstPending(run.Run)
	if run.Status != machine.Completed {
		m.text("current_node_id", nodeOf(run.Run, first))
	}
	switch run.Status {
	case machine.Failed:
		m.text("last_error", run.Error)
	case machine.Cancelled:
		m.text("last_error", run.Reason)
	}
	m.text("delegate_correlation_id", run.DelegateCorrelationID)
	m.text("child_execution_id", run.ChildExecutionID)
	m.text("parent_execution_id", run.ParentExecutionID)
	if f := run.ForkedFrom; f.ExecutionID != "" {
		m.put("forked_from", members{{"execution_id", f.ExecutionID}, {"seq", float64(f.Seq)}})
	}
	if first != nil {
		putDelegate(&m, first)
		m.text("signal_name", first.SignalName)
	}
	if run.Status.Terminal() {
		putEnd(&m, run.Run)
	} else {
		m.object("state", run.State)
		if first != nil {
			putSpan(&m, first.Span)
		}
	}
	if run.Status == machine.Failed {
		m.text("code", run.ErrorCode)
		m.text("failed_node_id", run.ErrorNodeID)
	}
	m.text("reason", run.Reason)
	m.text("activity_execution_mode", string(run.Mode))
	m.text("definition_name", run.DefinitionName)
	m.text("definition_version", run.DefinitionVersion)
	m.text("definition_hash", run.DefinitionHash)
	m.instant("created_at", run.CreatedAt)
	m.instant("updated_at", run.UpdatedAt)
	m.number("seq", run.Seq)
	putLimits(&m, run.Run)
	putPending(&m, run)
	return m
}

// putLimits puts the limits that the run nears.
func putLimits(m *members, run *graph.Run) {
	var list []members
	for _, w := range run.Warnings {
		list = append(list, members{
			{"code", string(w.Code)}, {"message", w.Message}, {"used", w.Used}, {"limit", w.Limit}, {"hint", w.Hint},
		})
	}
	if list != nil {
		m.put("warnings", list)
	}
}

// putEnd puts what a run left behind when it ended.
func putEnd(m *members, run *graph.Run) {
	switch run.Status {
	case machine.Completed:
		final := run.FinalState
		if final == nil {
			final = map[string]any{}
		}
		m.put("final_state", final)
		m.put("result", run.Result)
	case machine.Failed, machine.Cancelled:
		m.object("final_state", run.FinalState)
	}
}

// phaseOf is the protocol's phase of a status; it has none for timers.
func phaseOf(s machine.Status) history.Phase {
	switch s {
	case machine.AwaitingTimer, machine.AwaitingChild:
		return history.PhaseRunning
	default:
		return history.Phase(s)
	}
}

// firstPending is the entry that the classic single members speak of: the first, in branch order, of the kind that the
// status names.
func firstPending(run *graph.Run) *graph.Pending {
	for i := range run.Pending {
		if statusOf(run.Pending[i].Kind) == run.Status {
			return &run.Pending[i]
		}
	}
	if len(run.Pending) > 0 {
		return &run.Pending[0]
	}
	return nil
}

func statusOf(kind machine.WaitKind) machine.Status {
	switch kind {
	case machine.WaitActivity, machine.WaitDelegate:
		return machine.AwaitingActivity
	case machine.WaitInterrupt:
		return machine.Interrupted
	case machine.WaitSignal:
		return machine.AwaitingSignal
	case machine.WaitTimer, machine.WaitBackoff:
		return machine.AwaitingTimer
	default:
		return machine.AwaitingChild
	}
}

func nodeOf(run *graph.Run, first *graph.Pending) string {
	if first != nil {
		return first.NodeID
	}
	return run.CurrentNodeID
}

func putDelegate(m *members, p *graph.Pending) {
	m.text("agent_id", p.AgentID)
	m.text("protocol", p.Protocol)
	m.object("delegate_input", p.DelegateInput)
}

func putSpan(m *members, span *history.ParallelSpan) {
	if span != nil {
		m.put("parallel_span", encodeSpan(span))
	}
}

func encodeSpan(span *history.ParallelSpan) members {
	return members{
		{"parallel_node_id", span.ParallelNodeID}, {"join_target_id", span.JoinTargetID},
		{"branch_name", span.BranchName}, {"branch_entry_node_id", span.BranchEntryNodeID},
	}
}
