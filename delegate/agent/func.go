package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Func makes a Go function a tool. The schema of its arguments follows from In, a struct whose fields have json tags; a tag jsonschema
// describes a field. It returns the result. It fails by returning an error: an *activities.Failure keeps its code, any other
// has the code HANDLER_ERROR. CallOf gives f the key of the call, its run and its heartbeat. For a tool that only reads set WithOnCrash(Repeat) and WithParallel(true). A type that has no schema is
// an error of Tools.
func Func[In, Out any](name, description string, f func(ctx context.Context, in In) (Out, error), options ...Option) Toolset {
	t := &function{tool: Tool{Name: name, Description: description, Source: "go"}}
	for _, o := range options {
		o(&t.tool)
	}
	schema, err := jsonschema.For[In](nil)
	if err == nil {
		t.tool.Parameters, err = asObject(schema)
	}
	if err != nil {
		t.bad = fmt.Errorf("tool %q: its arguments have no schema: %w", name, err)
	}
	t.call = func(ctx context.Context, arguments map[string]any) (any, error) {
		var in In
		if err := jsonvalue.Into(arguments, &in); err != nil {
			return nil, activities.Fail(problem.HandlerError, "the arguments of tool %q do not fit its function: %v", name, err)
		}
		return f(ctx, in)
	}
	return t
}

// function is a toolset of one Go function.
type function struct {
	tool Tool
	call func(ctx context.Context, arguments map[string]any) (any, error)
	bad  error
}

// Tools implements Toolset.
func (t *function) Tools(context.Context) ([]Tool, error) {
	if t.bad != nil {
		return nil, activities.Fail(problem.HandlerError, "%v", t.bad)
	}
	return []Tool{t.tool}, nil
}

// Call implements Toolset.
func (t *function) Call(ctx context.Context, c Call) (any, error) {
	out, err := t.call(context.WithValue(ctx, callKey{}, c), c.Arguments)
	if err != nil {
		if _, ok := errors.AsType[*activities.Failure](err); ok || ctx.Err() != nil {
			return nil, err
		}
		return nil, activities.Fail(problem.HandlerError, "%v", err)
	}
	plain, err := jsonvalue.Normalize(out)
	if err != nil {
		return nil, activities.Fail(problem.ActivityOutputInvalid, "the result of tool %q cannot be recorded: %v", t.tool.Name, err)
	}
	return plain, nil
}

type callKey struct{}

// CallOf returns the call that the function of Func answers, from the context that it was given: the key to hand on to whatever the
// function calls, so that a repeated call counts once; the run and the node (Request); the heartbeat. ok is false for any other context.
func CallOf(ctx context.Context) (c Call, ok bool) {
	c, ok = ctx.Value(callKey{}).(Call)
	return c, ok
}

func asObject(v any) (map[string]any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	return object, json.Unmarshal(text, &object)
}
