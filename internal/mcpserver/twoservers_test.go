package mcpserver_test

import (
	"context"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// hostOf returns a client of a server over the store that performs the steps of one handler.
func hostOf(t *testing.T, store history.Store, handler string, step activities.StepHandler) *host {
	t.Helper()
	steps := activities.NewStepRegistry()
	if err := steps.Register(handler, step); err != nil {
		t.Fatal(err)
	}
	return newHostOver(t, store, graph.Options{Activities: activities.Composite{Step: steps}})
}

// A server that lacks a handler accepts the answer to a question, and says that it cannot continue the run and what it lacks;
// the server that has the handler continues it.
func TestNextOfARunForAnotherServer(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	serve := func(handler string) *host {
		return hostOf(t, store, handler, func(context.Context, activities.Request) (any, error) { return object{handler: true}, nil })
	}
	fit, unfit := serve("urn:book"), serve("urn:other")
	definition := definitionFile(t, "booking")
	fit.ok("workflow_start", object{"execution_id": "r", "definition": definition})

	const missing = `step handler "urn:book" (node "book")`
	asked := unfit.ok("workflow_status", object{"execution_id": "r"})
	if note := at(t, asked, "next", "note").(string); !contains(note, missing) || !contains(note, "activity_execution_mode host_mediated") {
		t.Errorf("before the answer: %s", note)
	}
	if note := at(t, fit.ok("workflow_status", object{"execution_id": "r"}), "next", "note").(string); contains(note, "lacks") {
		t.Errorf("where nothing is missing: %s", note)
	}
	args := object{"execution_id": "r", "interrupt_id": "r:ask#1", "resume_payload": object{"ok": true}, "wait_ms": 0}
	answered := unfit.ok("workflow_resume", args)
	want(t, answered, object{"status": "running"})
	for _, answer := range []object{answered, unfit.ok("workflow_status", object{"execution_id": "r"}), unfit.ok("workflow_resume", args)} {
		want(t, at(t, answer, "next").(object), object{"tool": "workflow_status"})
		note := at(t, answer, "next", "note").(string)
		if !contains(note, missing) || !contains(note, "workflows-engine worker with Composite.Step") || contains(note, "by itself") {
			t.Errorf("after the answer: %s", note)
		}
	}
	if _, err := fit.runner.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
		t.Fatal(err)
	}
	want(t, unfit.ok("workflow_status", object{"execution_id": "r", "wait_ms": 20000}), object{"phase": "completed"})

	// The other solution in the note: the host performs the step.
	fit.ok("workflow_start", object{"execution_id": "h", "definition": definition})
	args = object{"execution_id": "h", "interrupt_id": "h:ask#1", "resume_payload": object{"ok": true}, "activity_execution_mode": "host_mediated"}
	want(t, unfit.ok("workflow_resume", args), object{"status": "awaiting_activity", "node_id": "book"})
}

// The caller can answer a question although this server lacks the handler of another pending node; next names both.
func TestNextBesideWhatIsMissing(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	serve := func(handler string) *host {
		return hostOf(t, store, handler, func(ctx context.Context, _ activities.Request) (any, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
	}
	definition := object{
		"document": object{"schema": "s", "name": "beside", "version": "1"}, "state_schema": object{"type": "object"},
		"nodes": []any{
			object{"id": "s", "type": "start"},
			object{"id": "f", "type": "parallel", "config": object{"join": "all", "branches": []any{object{"name": "l", "entry": "a"}, object{"name": "r", "entry": "g"}}}},
			object{"id": "a", "type": "step", "config": object{"handler": "urn:book"}},
			object{"id": "g", "type": "wait", "config": object{"kind": "signal", "signal": "go"}},
			object{"id": "e", "type": "end"},
		},
		"edges": []any{
			object{"source": "__start__", "target": "s"}, object{"source": "s", "target": "f"}, object{"source": "f", "target": "e"},
			object{"source": "a", "target": "e"}, object{"source": "g", "target": "e"},
		},
	}
	fit := serve("urn:book")
	fit.ok("workflow_start", object{"execution_id": "r", "definition": definition, "wait_ms": 0})
	if err := fit.runner.Close(); err != nil {
		t.Fatal(err)
	}
	next := at(t, serve("urn:other").ok("workflow_status", object{"execution_id": "r"}), "next").(object)
	want(t, next, object{"tool": "workflow_signal"})
	if note := next["note"].(string); !contains(note, `Node "a" waits for a process that has step handler "urn:book"`) {
		t.Errorf("note: %s", note)
	}
}
