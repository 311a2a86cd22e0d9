package history

import "github.com/workflows-engine/workflows-engine/internal/jsonvalue"

// memberStateRef is the member of a checkpoint with the state, in its member "state".
const memberStateRef = "stateRef"

// MemberRequest is the member with what is sent, MemberAgentStep that with a step of an attempt.
const (
	MemberRequest   = "request"
	MemberAgentStep = "agentStep"
)

// IsOwnValue reports whether a member is this engine's alone, so that a store may keep its large values elsewhere in a record that other
// engines can read.
func IsOwnValue(member string) bool { return member == MemberRequest || member == MemberAgentStep }

// isValue lists the members of payloads with values of the workflow, which may be large.
var isValue = map[string]bool{
	"input": true, "payload": true, "output": true, "state": true, "result": true, "delegateInput": true, "usage": true, "repair": true, "data": true,
	MemberRequest: true, MemberAgentStep: true, "childFinalState": true, "childResult": true, "mergedOutput": true, memberStateRef: true,
}

// Weigh returns a lower bound of the bytes that the values of the record take when written in full. With a limit greater than 0
// it stops there, and returns a number not below the limit. What is this engine's alone (IsOwnValue) does not count: it never
// makes a record one that is written short.
func (r *Record) Weigh(limit int) int {
	p := &r.Payload
	n := 0
	for _, m := range [...]map[string]any{
		p.State, p.StateRef, p.Output, p.Input, p.SignalPayload, p.DelegateInput, p.Usage, p.Repair, p.Data, p.ChildFinalState, p.MergedOutput,
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

// Text returns the complete payload as an engine of the protocol stores it: Raw or, if the store keeps the values elsewhere, the
// payload written again. The result must not be changed.
func (r *Record) Text(executionID string) []byte {
	if r.Raw != nil {
		return r.Raw
	}
	return r.AppendPayload(nil, executionID)
}
