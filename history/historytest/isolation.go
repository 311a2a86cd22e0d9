package historytest

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/history"
)

// delegatePending is a run with every value that a projection shares with records.
var delegatePending = lines(Start("w", "host_mediated"), []string{
	"C ScheduleNode d",
	"E NodeScheduled d",
	`E ActivityRequested d {"nodeType":"agent_delegate","agentId":"coder","protocol":"a2a","delegateCorrelationId":"c","delegateInput":{"task":{"deep":[1]}},` +
		`"activityExecutionMode":"host_mediated"}`,
})

// givenValuesAreIsolated: later changes by the caller to a batch do not change the store.
func givenValuesAreIsolated(t *testing.T, s history.Store) {
	x := NewTrace(t, "x")
	b := x.Batch(delegatePending...)
	fill(&b)
	must(t, s.Append(t.Context(), b))
	before := describeAll(t, s, "x")
	b.Records[0].Payload.WorkflowName = "changed"
	b.Records[4].Payload.State["changed"] = true
	b.Execution.DelegateInput["task"].(map[string]any)["deep"].([]any)[0] = "changed"
	b.Execution.Waits[0].NodeID = "changed"
	b.Position[0], b.Timers[0].Key, b.Definition.Text[2] = 'X', "changed", 'X'
	if after := describeAll(t, s, "x"); after != before {
		t.Errorf("changing what was given changed\n%s\nto\n%s", before, after)
	}
	if d := got[history.StoredDefinition](t)(s.Definition(t.Context(), "h")); string(d.Text) != `{"a":1}` {
		t.Errorf("the definition became %s", d.Text)
	}
}

// gotValuesAreIsolated: changes by the caller to returned values do not change the store.
func gotValuesAreIsolated(t *testing.T, s history.Store) {
	ctx := t.Context()
	x := NewTrace(t, "x")
	b := x.Batch(delegatePending...)
	fill(&b)
	must(t, s.Append(ctx, b))
	before := describeAll(t, s, "x")
	rs := read(t, s, "x")
	rs[4].Payload.State["changed"] = true
	rs[0].Raw[3] = 'X'
	e := got[history.Execution](t)(s.Execution(ctx, "x"))
	e.DelegateInput["task"] = "changed"
	e.Waits[0].NodeID = "changed"
	listed := got[history.ListPage](t)(s.List(ctx, history.ListQuery{}))
	listed.Executions[0].DelegateInput["task"] = "changed"
	_, position, err := s.Position(ctx, "x")
	must(t, err)
	position[0] = 'X'
	due := got[[]history.Timer](t)(s.DueTimers(ctx, Begin, 0))
	due[0].Key = "changed"
	d := got[history.StoredDefinition](t)(s.Definition(ctx, "h"))
	d.Text[0] = 'X'
	if after := describeAll(t, s, "x"); after != before {
		t.Errorf("changing what was got changed\n%s\nto\n%s", before, after)
	}
	if d := got[history.StoredDefinition](t)(s.DefinitionByName(ctx, "w", "")); string(d.Text) != `{"a":1}` {
		t.Errorf("the definition became %s", d.Text)
	}
}
