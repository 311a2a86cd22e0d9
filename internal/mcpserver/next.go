package mcpserver

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// nextWaitMS is the wait_ms that next suggests for a run that goes on by itself.
const nextWaitMS = 20_000

// nextCall names the call that takes a run further, with arguments to copy. What the caller has to find out stands there
// as null or as an empty object, so that a copy without it is mostly refused instead of believed.
func nextCall(run *graph.Run) members {
	p := actionable(run)
	if p == nil {
		note := "The run goes on by itself."
		if first := firstPending(run); first != nil && !first.Due.IsZero() {
			note = "The run goes on by itself at due_at; ask then."
		}
		return call("workflow_status", members{{"execution_id", run.ExecutionID}, {"wait_ms", float64(nextWaitMS)}}, note)
	}
	args := members{{"execution_id", run.ExecutionID}}
	more := ""
	if n := actionableCount(run) - 1; n > 0 {
		more = fmt.Sprintf(" %d more pending, in any order.", n)
	}
	if p.NodeType == "" { // a run of another engine, whose definition is not stored
		args.put("definition", nil)
		more += " Send the run's definition: it is not stored here."
	}
	switch p.Kind {
	case machine.WaitInterrupt:
		args.text("interrupt_id", p.ID)
		args.put("resume_payload", blanks(p.ResumeSchema))
		return call("workflow_resume", args, "Ask the person what prompt says; their answer is resume_payload."+more)
	case machine.WaitSignal:
		args.text("signal_name", p.SignalName)
		args.put("payload", map[string]any{})
		return call("workflow_signal", args, "Call when the signal has come."+more)
	}
	args.text("node_id", p.NodeID)
	if p.Span != nil {
		args.put("parallel_span", encodeSpan(p.Span))
	}
	args.text("idempotency_key", p.IdempotencyKey)
	schema, _ := p.OutputSchema.(map[string]any)
	outcome := members{{"ok", true}, {"result", blanks(schema)}}
	outcome.text("delegate_correlation_id", p.CorrelationID)
	args.put("outcome", outcome)
	return call("workflow_submit_activity", args, "Do it, then fill in result."+more)
}

func call(tool string, args members, note string) members {
	return members{{"tool", tool}, {"arguments", args}, {"note", note}}
}

// actionable is the first entry that waits for the caller: the one that the status speaks of if there is one.
func actionable(run *graph.Run) *graph.Pending {
	if p := firstPending(run); p != nil && isActionable(p) {
		return p
	}
	for i := range run.Pending {
		if isActionable(&run.Pending[i]) {
			return &run.Pending[i]
		}
	}
	return nil
}

func actionableCount(run *graph.Run) int {
	n := 0
	for i := range run.Pending {
		if isActionable(&run.Pending[i]) {
			n++
		}
	}
	return n
}

func isActionable(p *graph.Pending) bool {
	switch p.Kind {
	case machine.WaitInterrupt, machine.WaitSignal:
		return true
	case machine.WaitActivity, machine.WaitDelegate:
		return p.Host
	default:
		return false
	}
}

// maxBlanks bounds how many members of a schema are shown as blanks.
const maxBlanks = 12

// blanks is an object with the members that a schema describes, the required ones first.
func blanks(schema map[string]any) members {
	shown := members{}
	add := func(name string) {
		for _, m := range shown {
			if m.name == name {
				return
			}
		}
		if len(shown) < maxBlanks {
			shown.put(name, nil)
		}
	}
	if names, ok := schema["required"].([]any); ok {
		for _, n := range names {
			if name, ok := n.(string); ok {
				add(name)
			}
		}
	}
	if properties, ok := schema["properties"].(map[string]any); ok {
		for _, name := range jsonvalue.Keys(properties) {
			add(name)
		}
	}
	return shown
}
