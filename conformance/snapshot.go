package conformance

import (
	"fmt"
	"maps"
	"slices"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// snapshotMembers are the members of answers that are compared (spec: execution, 13.4).
var snapshotMembers = map[string]bool{
	"execution_id": true, "status": true, "phase": true, "final_state": true, "result": true, "error": true,
	"node_id": true, "state": true, "code": true, "current_node_id": true, "last_error": true,
	"delegate_correlation_id": true, "agent_id": true, "protocol": true, "delegate_input": true,
	"child_execution_id": true, "parent_execution_id": true, "parallel_span": true, "signal_name": true, "reason": true,
	"execution_count": true, "execution_ids": true, "next_cursor": true,
}

// snapshot is an answer reduced to what is compared.
type snapshot struct {
	op      string
	isError bool
	code    string
	members map[string]any // plain JSON
}

func newSnapshot(op string, a Answer) (snapshot, error) {
	s := snapshot{op: op, isError: a.IsError, code: a.Code}
	if a.IsError {
		return s, nil
	}
	value, err := jsonvalue.Normalize(a.Fields)
	if err != nil {
		return s, fmt.Errorf("the answer is not JSON: %w", err)
	}
	all, _ := value.(map[string]any)
	s.members = map[string]any{}
	for name, v := range all {
		if snapshotMembers[name] {
			s.members[name] = v
		}
	}
	if op != OpList {
		return s, nil
	}
	executions, _ := all["executions"].([]any)
	ids := make([]string, 0, len(executions))
	for _, e := range executions {
		item, _ := e.(map[string]any)
		id, _ := item["execution_id"].(string)
		ids = append(ids, id)
	}
	slices.Sort(ids)
	list := make([]any, len(ids))
	for i, id := range ids {
		list[i] = id
	}
	s.members["execution_count"], s.members["execution_ids"] = float64(len(ids)), list
	return s, nil
}

// value is the snapshot as the protocol writes it.
func (s snapshot) value() map[string]any {
	v := maps.Clone(s.members)
	if v == nil {
		v = map[string]any{}
	}
	v["op"], v["is_error"] = s.op, s.isError
	if s.isError {
		v["error"] = map[string]any{"code": s.code}
	}
	return v
}

// comparable is value with what differs between two runs of the same script taken out: a cursor holds a time.
func (s snapshot) comparable() map[string]any {
	v := s.value()
	if _, more := v["next_cursor"]; more {
		v["next_cursor"] = true
	}
	return v
}
