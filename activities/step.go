package activities

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// StepHandler performs a step. It returns data and nothing else: an object becomes the node's delta whatever
// its fields are called, other values are wrapped as {"value": …}, nil is {}. It fails by returning an error: a
// *Failure keeps its code and advice about retrying, any other error becomes HANDLER_ERROR.
type StepHandler func(ctx context.Context, req Request) (any, error)

// Call is the argument of a typed step handler: the request, and the workflow state decoded into In.
type Call[In any] struct {
	Request
	Input In
}

// RegisterStep registers a handler that works on Go types. The workflow state is decoded into In by the rules of
// encoding/json (unknown fields and other spellings of a field are ignored), and Out is encoded by the same rules. A state that does
// not fit In fails the attempt with HANDLER_ERROR without calling h, and without asking for another attempt.
func RegisterStep[In, Out any](r *StepRegistry, name string, h func(ctx context.Context, call Call[In]) (Out, error)) error {
	if h == nil {
		return problem.New(problem.StepConfigInvalid, "step handler %q is nil", name)
	}
	return r.Register(name, func(ctx context.Context, req Request) (any, error) {
		call := Call[In]{Request: req}
		if err := jsonvalue.Into(req.State(), &call.Input); err != nil {
			return nil, &Failure{
				Code:      string(problem.HandlerError),
				Message:   "the workflow state does not fit the input of the step handler",
				Retryable: RetryPointless,
				Err:       err,
			}
		}
		return h(ctx, call)
	})
}

// RegisterStatic registers handlers with fixed results, keyed by handler name. A value is the output, save that of
// {"ok": true, "output": …} has the field as its output, and {"ok": false, "error": "…", "code": "…"} fails every attempt with
// that error and code (HANDLER_ERROR without one). Nothing is registered if one of the names is invalid.
func (r *StepRegistry) RegisterStatic(outputs map[string]any) error {
	names := jsonvalue.Keys(outputs)
	for _, name := range names {
		if strings.TrimSpace(name) == "" {
			return problem.New(problem.StepConfigInvalid, "a step handler needs a name; one of the fixed outputs has a blank one")
		}
	}
	for _, name := range names {
		output, failure := fixedResult(name, jsonvalue.Clone(outputs[name]))
		answer := func(context.Context, Request) (Result, error) {
			if failure != nil {
				again := *failure
				return Result{}, &again
			}
			return Result{Output: jsonvalue.Clone(output)}, nil
		}
		if err := r.add(name, entry{execute: answer, immediate: true}); err != nil {
			return err
		}
	}
	return nil
}

// fixedResult reads a fixed result: an output, or the port's result with a field "ok" (spec: activities, 4). An object with
// ok: true and fields beyond that form is an output as a whole.
func fixedResult(name string, value any) (output any, failure *Failure) {
	object, _ := value.(map[string]any)
	wrapped, given := object["output"]
	switch ok, isResult := object["ok"].(bool); {
	case isResult && ok && given && len(object) == 2:
		value = wrapped
	case isResult && !ok:
		text, _ := object["error"].(string)
		code, _ := object["code"].(string)
		failure = Fail(problem.Code(cmp.Or(code, string(problem.HandlerError))), "%s",
			cmp.Or(text, "the fixed result of step handler "+strconv.Quote(name)+" is a failure without a text"))
		failure.Retryable = RetrySense(failure.Code)
	}
	if value == nil {
		value = map[string]any{"value": nil} // JSON null is a value, unlike a handler that returns nil
	}
	return value, failure
}

// Execute runs the handler that config.handler names (spec: activities, 4).
func (r *StepRegistry) Execute(ctx context.Context, req Request) (Result, error) {
	name, err := handlerName(req)
	if err != nil {
		return Result{}, err
	}
	e, ok := r.lookup(name)
	if !ok {
		return Result{}, Fail(problem.HandlerNotFound, "step handler %q is not registered; registered: %s", name, r.nameList())
	}
	return e.execute(ctx, req)
}

// execute runs the handler as an executor.
func (h StepHandler) execute(ctx context.Context, req Request) (Result, error) {
	output, err := h(ctx, req)
	if err != nil {
		if failure, ok := errors.AsType[*Failure](err); ok {
			return Result{}, failure
		}
		return Result{}, &Failure{Code: string(problem.HandlerError), Err: err}
	}
	return Result{Output: output}, nil
}

// Capabilities reports whether the node's handler is registered. A node without one fails wherever it runs. Fixed outputs and
// failures are immediate.
func (r *StepRegistry) Capabilities(n Node) Capabilities {
	name, err := handlerName(Request{NodeID: n.ID, NodeType: n.Type, Config: n.Config})
	e, known := r.lookup(name)
	can := Capabilities{Immediate: !known || e.immediate, Targets: r.Names}
	if n.Type != "step" || !known && err == nil {
		can.Missing = MissingTarget
	}
	return can
}

func handlerName(req Request) (string, error) {
	if req.NodeType != "step" {
		return "", Fail(problem.ExecutorUnsupportedNode, "node %q is of type %q; the step registry performs only step nodes", req.NodeID, req.NodeType)
	}
	name, _ := req.Config["handler"].(string)
	if name = strings.TrimSpace(name); name == "" {
		return "", Fail(problem.StepConfigInvalid, "step %q names no handler; set config.handler to a registered name", req.NodeID)
	}
	return name, nil
}

// nameList is the registered names as text, the first few of many.
func (r *StepRegistry) nameList() string {
	const most = 8
	names := r.Names()
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
