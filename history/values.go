package history

import "github.com/workflows-engine/workflows-engine/internal/jsonvalue"

// memberStateRef is the member of a checkpoint whose member "state" holds the state.
const memberStateRef = "stateRef"

// isValue tells the members of payloads that hold values of the workflow, which can be large.
var isValue = map[string]bool{
	"input": true, "payload": true, "output": true, "state": true, "result": true, "delegateInput": true, "usage": true, "repair": true,
	"childFinalState": true, "childResult": true, "mergedOutput": true, memberStateRef: true,
}

// Weigh gives about how many bytes the values of the record take when they are written in full, never more than that;
// at a limit greater than 0 it stops and gives some number not below it.
func (r *Record) Weigh(limit int) int {
	p := &r.Payload
	n := 0
	for _, m := range [...]map[string]any{
		p.State, p.StateRef, p.Output, p.Input, p.SignalPayload, p.DelegateInput, p.Usage, p.Repair, p.ChildFinalState, p.MergedOutput,
	} {
		if len(m) > 0 && (limit <= 0 || n < limit) {
			n += jsonvalue.Weigh(m, max(limit-n, 0))
		}
	}
	for _, o := range [...]*Optional{&p.Result, &p.ChildResult} {
		if o.Set && (limit <= 0 || n < limit) {
			n += jsonvalue.Weigh(o.Value, max(limit-n, 0))
		}
	}
	return n
}

// Text is the record's payload as an engine of the protocol stores it: Raw, or where a store keeps the values elsewhere
// the payload written anew. It is complete in itself. The result must not be changed.
func (r *Record) Text(executionID string) []byte {
	if r.Raw != nil {
		return r.Raw
	}
	return r.AppendPayload(nil, executionID)
}
