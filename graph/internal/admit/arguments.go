package admit

import (
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Mode rejects an unknown mode with the code; "" is accepted.
func Mode(m machine.Mode, code problem.Code) error {
	switch m {
	case "", machine.InProcess, machine.HostMediated:
		return nil
	}
	return problem.New(code, "mode %q is unknown", string(m)).
		WithHint("Use %q or %q.", machine.InProcess, machine.HostMediated)
}

// Branches rejects an unknown branch order with the code; "" is accepted.
func Branches(b machine.BranchOrder, code problem.Code) error {
	switch b {
	case "", machine.Concurrent, machine.Sequential:
		return nil
	}
	return problem.New(code, "branch order %q is unknown", string(b)).
		WithHint("Use %q or %q.", machine.Concurrent, machine.Sequential)
}

// MaxExecutionID is the longest execution id, in bytes, that a caller may choose. Ids of subworkflows are longer.
const MaxExecutionID = 256

// ExecutionID rejects ids that callers must not choose (spec: execution, 14.4, W-63). A blank id requests a new one.
func ExecutionID(id string) error {
	if len(id) > MaxExecutionID {
		return problem.New(problem.ValidationError, "execution id %q is longer than %d bytes", id, MaxExecutionID).
			WithHint("Choose a shorter id, or leave it out.")
	}
	if strings.Contains(id+":", history.ChildMark) { // one that ends with ":sub", too: the ids of its subworkflows would be like those of another run
		return problem.New(problem.ValidationError, "execution id %q contains %q, which is reserved for subworkflows", id, history.ChildMark).
			WithHint("Choose another id, or leave it out.")
	}
	if strings.TrimSpace(id) != "" && !history.Seen(id) {
		return problem.New(problem.ValidationError, "execution id %q contains invisible characters", id).
			WithHint("Use letters, digits and punctuation, or leave it out.")
	}
	return nil
}

// NotNegative rejects an option below zero.
func NotNegative[N ~int | ~int64](option string, value N) error {
	if value >= 0 {
		return nil
	}
	return problem.New(problem.UsageError, "option %s must not be negative", option).WithHint("Leave it out for the default.")
}

// Object normalizes an object given by a caller and checks its size. Nil counts as empty. label names the argument; limit is in bytes of
// canonical JSON.
func Object(label string, m map[string]any, limit int, code problem.Code) (map[string]any, error) {
	if m == nil {
		return map[string]any{}, nil
	}
	if jsonvalue.Size(m, limit) > limit { // before a copy is made
		return nil, Bytes(label, jsonvalue.Size(m, 0), limit, code)
	}
	plain, err := jsonvalue.Normalize(m)
	if err != nil {
		e := problem.New(code, "%s cannot be recorded", label).WithCause(err)
		if p, ok := problem.As(err); ok {
			e.At = p.At
		}
		return nil, e
	}
	return plain.(map[string]any), nil
}

// Bytes rejects a value larger than the limit. The error names both sizes.
func Bytes(label string, bytes, limit int, code problem.Code) error {
	if bytes <= limit {
		return nil
	}
	e := problem.New(code, "%s has %d bytes, which exceeds the limit of %d", label, bytes, limit).
		WithHint("Keep large content elsewhere and pass a reference to it.")
	e.Details = map[string]any{"label": label, "bytes": float64(bytes), "maxBytes": float64(limit)}
	return e
}

// List rejects a query with an invalid limit or an unknown phase.
func List(q history.ListQuery) error {
	if _, err := q.PageSize(); err != nil {
		return err
	}
	for _, p := range append([]history.Phase{q.Phase}, q.Phases...) {
		if p != "" && !slices.Contains(history.Phases(), p) {
			return problem.New(problem.ValidationError, "phase %q is unknown", string(p))
		}
	}
	return nil
}

// Queue rejects an invalid name of a queue with the code; "" is accepted.
func Queue(name string, code problem.Code) error {
	if name == "" || history.IsQueueName(name) {
		return nil
	}
	return problem.New(code, "invalid queue %q", name).
		WithHint("Use at most %d letters, digits, '.', '_' and '-'.", history.MaxQueueName)
}

// Deadline rejects a negative deadline of a run with the code; 0 is none.
func Deadline(d time.Duration, code problem.Code) error {
	if d >= 0 {
		return nil
	}
	return problem.New(code, "invalid deadline %s", d).WithHint("Give the longest time that the run may take, such as 72h.")
}

// Depth rejects a subworkflow below a run at a nesting depth, if runs may not be nested deeper than most.
func Depth(depth, most int) error {
	if depth < most {
		return nil
	}
	return problem.New(problem.SubworkflowDepthExceeded, "subworkflows are nested more than %d levels deep", most)
}
