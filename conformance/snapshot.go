package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// runMembers, statusMembers and listMembers are the compared answer fields (spec: execution, 13.4): those that the protocol defines
// for the operation. A surface may return more.
var (
	runMembers = []string{
		"execution_id", "status", "final_state", "result", "error", "node_id", "state", "code", "parallel_span",
		"agent_id", "protocol", "delegate_input", "delegate_correlation_id", "signal_name", "reason",
	}
	statusMembers = []string{
		"execution_id", "phase", "current_node_id", "last_error", "delegate_correlation_id",
		"child_execution_id", "parent_execution_id", "agent_id", "protocol", "delegate_input", "signal_name",
	}
	listMembers = []string{"execution_count", "execution_ids", "next_cursor"}
)

func membersOf(op string) []string {
	switch op {
	case OpStatus:
		return statusMembers
	case OpList:
		return listMembers
	}
	return runMembers
}

// snapshot is the compared part of an answer.
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
		if slices.Contains(membersOf(op), name) {
			s.members[name] = v
		}
	}
	if op != OpList {
		return s, nil
	}
	executions, _ := all["executions"].([]any)
	ids := make([]any, 0, len(executions))
	for _, e := range executions {
		item, _ := e.(map[string]any)
		id, _ := item["execution_id"].(string)
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	s.members["execution_count"], s.members["execution_ids"] = float64(len(ids)), ids
	return s, nil
}

// value returns the snapshot as the protocol writes it.
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

// comparable returns value without fields that vary between runs of a script: a cursor contains a time.
func (s snapshot) comparable() map[string]any {
	v := s.value()
	if _, more := v["next_cursor"]; more {
		v["next_cursor"] = true
	}
	return v
}
