package toolcall

import (
	"strconv"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// TemplatesKey is the member of a node's metadata that, if true, asks for the node's arguments to be evaluated.
const TemplatesKey = "argument_templates"

// arguments returns the arguments of a call: as the definition has them, {} if there are none (spec: activities, 6.2).
// Only if the node's metadata asks for it are {"jq": …}, {"literal": …} and "${ … }" evaluated over the state, at any
// depth, by the rules of input_mapping.
func arguments(req activities.Request) (map[string]any, error) {
	raw, given := req.Config["arguments"]
	if !given {
		raw = map[string]any{}
	}
	if req.Metadata[TemplatesKey] == true {
		var err error
		if raw, err = evaluate(raw, req.State, req.Time(time.Now)); err != nil {
			failure := activities.Fail(problem.ExpressionFailed, "the arguments of %q", req.NodeID)
			if e, ok := problem.As(err); ok {
				failure.Code = string(e.Code)
			}
			failure.Err, failure.Retryable = err, activities.RetryPointless
			return nil, failure
		}
	}
	object, ok := raw.(map[string]any)
	if !ok {
		return nil, activities.Fail(problem.InvalidToolCallConfig, "the arguments of %q are not an object", req.NodeID)
	}
	return object, nil
}

// evaluate returns a copy of v with its programs and literals replaced.
func evaluate(v any, state func() map[string]any, now time.Time) (any, error) {
	parts := map[string]any{}
	collect(v, "", parts)
	mapping, _ := expr.CompileMapping(parts) // what does not compile fails in Eval
	values, err := mapping.EvalAt(state(), expr.Env{Now: now})
	if err != nil {
		return nil, err
	}
	return substitute(v, "", values), nil
}

// collect notes by pointer every part of v that may be a program or a literal: it becomes a member of one mapping, so
// that errors name the pointer.
func collect(v any, pointer string, parts map[string]any) {
	if _, ok := v.(string); ok || isExpression(v) {
		parts[pointer] = v
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			collect(member, pointer+"/"+jsonvalue.EscapePointer(name), parts)
		}
	case []any:
		for i, element := range v {
			collect(element, pointer+"/"+strconv.Itoa(i), parts)
		}
	}
}

func substitute(v any, pointer string, values map[string]any) any {
	if value, ok := values[pointer]; ok {
		return value
	}
	switch v := v.(type) {
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, member := range v {
			object[name] = substitute(member, pointer+"/"+jsonvalue.EscapePointer(name), values)
		}
		return object
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = substitute(element, pointer+"/"+strconv.Itoa(i), values)
		}
		return list
	}
	return v
}

// isExpression reports whether v is an object that stands for a value.
func isExpression(v any) bool {
	object, _ := v.(map[string]any)
	_, program := object["jq"]
	_, literal := object["literal"]
	return program || literal
}
