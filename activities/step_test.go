package activities_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func step(handler any) activities.Request {
	return activities.Request{
		NodeID: "work", NodeType: "step", Config: map[string]any{"handler": handler},
		State: func() map[string]any { return map[string]any{"n": 2.0, "other": "x"} },
	}
}

// A handler's data reaches the run as it is, whatever its members are called: nothing in it can pass for a result of
// the port (spec: activities, 4).
func TestStepHandlerData(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]any{
		"object":             map[string]any{"a": 1.0},
		"ok false":           map[string]any{"ok": false, "error": "x", "code": "Y"},
		"ok true with items": map[string]any{"ok": true, "items": []any{1.0}},
		"ok and output":      map[string]any{"ok": true, "output": map[string]any{"a": 1.0}},
		"list":               []any{1.0},
		"number":             5.0,
		"text":               "t",
		"nothing":            nil,
	} {
		r := activities.NewStepRegistry()
		if err := r.Register(" urn:x ", func(context.Context, activities.Request) (any, error) { return data, nil }); err != nil {
			t.Fatal(err)
		}
		got, err := r.Execute(t.Context(), step("\turn:x"))
		if err != nil || !reflect.DeepEqual(got.Output, data) {
			t.Errorf("%s: %v, %v", name, got.Output, err)
		}
	}
}

func TestStepRefusals(t *testing.T) {
	t.Parallel()
	r := activities.NewStepRegistry()
	fail := func(err error) activities.StepHandler {
		return func(context.Context, activities.Request) (any, error) { return nil, err }
	}
	cause := errors.New("disk full")
	for name, h := range map[string]activities.StepHandler{
		"urn:fails":   fail(cause),
		"urn:coded":   fail(fmt.Errorf("wrapped: %w", &activities.Failure{Code: "QUOTA", Message: "no more", Retryable: activities.RetrySensible})),
		"urn:replace": fail(cause),
	} {
		if err := r.Register(name, h); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Register("urn:replace", fail(&activities.Failure{Code: "SECOND"})); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		req  activities.Request
		code string
	}{
		{"no handler", step(nil), "STEP_CONFIG_INVALID"},
		{"blank handler", step("  "), "STEP_CONFIG_INVALID"},
		{"handler that is no string", step(5.0), "STEP_CONFIG_INVALID"},
		{"no config", activities.Request{NodeType: "step"}, "STEP_CONFIG_INVALID"},
		{"unknown", step("urn:none"), "HANDLER_NOT_FOUND"},
		{"other type", activities.Request{NodeType: "tool_call", Config: map[string]any{"handler": "urn:fails"}}, "ACTIVITY_EXECUTOR_UNSUPPORTED_NODE"},
		{"handler fails", step("urn:fails"), "HANDLER_ERROR"},
		{"handler fails with a code", step("urn:coded"), "QUOTA"},
		{"registered again", step("urn:replace"), "SECOND"},
	} {
		_, err := r.Execute(t.Context(), c.req)
		if wantFailure(t, err, c.code); c.code == "HANDLER_ERROR" && !errors.Is(err, cause) {
			t.Errorf("%s: the cause is lost: %v", c.name, err)
		}
	}
	_, err := r.Execute(t.Context(), step("urn:none"))
	if !strings.Contains(err.Error(), "urn:coded, urn:fails, urn:replace") {
		t.Errorf("%q does not say what is registered", err)
	}
}

func TestRegisterRefusals(t *testing.T) {
	t.Parallel()
	h := func(context.Context, activities.Request) (any, error) { return 1.0, nil }
	r := activities.NewStepRegistry()
	if err := r.Register("urn:a", h); err != nil {
		t.Fatal(err)
	}
	frozen := r.Frozen()
	for name, err := range map[string]error{
		"blank name":            r.Register(" ", h),
		"nil handler":           r.Register("urn:b", nil),
		"nil typed handler":     activities.RegisterStep[any, any](r, "urn:b", nil),
		"frozen":                frozen.Register("urn:b", h),
		"frozen, fixed outputs": frozen.RegisterStatic(map[string]any{"urn:b": 1.0}),
		"blank fixed name":      r.RegisterStatic(map[string]any{"urn:b": 1.0, "\t": 2.0}),
	} {
		if !errors.Is(err, problem.StepConfigInvalid) {
			t.Errorf("%s: %v, want STEP_CONFIG_INVALID", name, err)
		}
	}
	if names := r.Names(); !reflect.DeepEqual(names, []string{"urn:a"}) {
		t.Errorf("refused registrations left %v", names)
	}
	if err := r.Register("urn:later", h); err != nil {
		t.Fatal(err)
	}
	if names := frozen.Names(); !reflect.DeepEqual(names, []string{"urn:a"}) {
		t.Errorf("a later registration reached the frozen copy: %v", names)
	}
	if got, err := frozen.Execute(t.Context(), step("urn:a")); err != nil || got.Output != 1.0 {
		t.Errorf("the frozen copy does not run: %v, %v", got, err)
	}
}

func TestRegisterStatic(t *testing.T) {
	t.Parallel()
	outputs := map[string]any{
		" urn:object ": map[string]any{"ok": true, "items": []any{1.0}},
		"urn:result":   map[string]any{"ok": true, "output": map[string]any{"a": 1.0}},
		"urn:none":     map[string]any{"ok": true, "output": nil},
		"urn:text":     map[string]any{"ok": "no", "error": "data"},
		"urn:number":   5.0,
		"urn:null":     nil,
	}
	r := activities.NewStepRegistry()
	if err := r.RegisterStatic(outputs); err != nil {
		t.Fatal(err)
	}
	for handler, want := range map[string]any{
		"urn:object": map[string]any{"ok": true, "items": []any{1.0}},
		"urn:result": map[string]any{"a": 1.0},
		"urn:none":   map[string]any{"value": nil},
		"urn:text":   map[string]any{"ok": "no", "error": "data"},
		"urn:number": 5.0,
		"urn:null":   map[string]any{"value": nil},
	} {
		for range 2 { // what the first call gave away must not show in the second
			got, err := r.Execute(t.Context(), step(handler))
			if err != nil || !reflect.DeepEqual(got.Output, want) {
				t.Errorf("%s: %v, %v, want %v", handler, got.Output, err, want)
			}
			if object, ok := got.Output.(map[string]any); ok {
				object["changed"] = true
			}
		}
		if req := step(handler); !r.Capabilities(req.Node()).Immediate {
			t.Errorf("%s: not immediate", handler)
		}
	}
}

// TestAFixedResultThatIsAFailureFails: {"ok": false} is the port's failure, not an output.
func TestAFixedResultThatIsAFailureFails(t *testing.T) {
	t.Parallel()
	r := activities.NewStepRegistry()
	if err := r.RegisterStatic(map[string]any{
		"urn:coded": map[string]any{"ok": false, "error": "no such image", "code": "NO_IMAGE"},
		"urn:plain": map[string]any{"ok": false, "error": "broken", "output": map[string]any{"a": 1.0}},
		"urn:bare":  map[string]any{"ok": false},
	}); err != nil {
		t.Fatal(err)
	}
	for handler, want := range map[string]struct{ code, text string }{
		"urn:coded": {"NO_IMAGE", "no such image"},
		"urn:plain": {"HANDLER_ERROR", "broken"},
		"urn:bare":  {"HANDLER_ERROR", `"urn:bare" is a failure`},
	} {
		for range 2 {
			got, err := r.Execute(t.Context(), step(handler))
			failure, ok := errors.AsType[*activities.Failure](err)
			if !ok || failure.Code != want.code || !strings.Contains(failure.Message, want.text) || got.Output != nil {
				t.Errorf("%s: %v, %v", handler, got, err)
				continue
			}
			failure.Message = "changed" // it must not show in the next attempt
		}
	}
}

func TestRegisterStepTyped(t *testing.T) {
	t.Parallel()
	type in struct{ N int }
	type out struct {
		Doubled int `json:"doubled"`
	}
	r := activities.NewStepRegistry()
	err := activities.RegisterStep(r, "urn:double", func(_ context.Context, c activities.Call[in]) (out, error) {
		if c.NodeID != "work" {
			t.Errorf("the request is not handed on: %+v", c.Request)
		}
		return out{2 * c.Input.N}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Execute(t.Context(), step("urn:double")); err != nil || got.Output != (out{4}) {
		t.Errorf("%v, %v", got.Output, err)
	}
	if req := step("urn:double"); r.Capabilities(req.Node()).Immediate {
		t.Error("a handler of unknown duration counts as immediate")
	}

	misfit := step("urn:double")
	misfit.State = func() map[string]any { return map[string]any{"n": "two"} }
	_, err = r.Execute(t.Context(), misfit)
	if failure := wantFailure(t, err, "HANDLER_ERROR"); failure.Retryable != activities.RetryPointless {
		t.Error("a state that does not fit would be tried again")
	}
}

// A node is performed where its handler is. One that names none fails everywhere alike, so nobody else need be left it.
func TestPerformsNode(t *testing.T) {
	t.Parallel()
	steps := activities.NewStepRegistry()
	if err := steps.RegisterStatic(map[string]any{"urn:x": map[string]any{}}); err != nil {
		t.Fatal(err)
	}
	c := activities.Composite{Step: steps, LLMCall: activities.Stub{}}
	for _, q := range []struct {
		nodeType, handler string
		want              bool
	}{
		{"step", " urn:x ", true}, {"step", "urn:y", false}, {"step", "", true}, {"llm_call", "", true}, {"tool_call", "", false},
	} {
		if got := c.Capabilities(activities.Node{Type: q.nodeType, Config: map[string]any{"handler": q.handler}}).Missing == activities.MissingNothing; got != q.want {
			t.Errorf("%s %q: %v", q.nodeType, q.handler, got)
		}
	}
	if err := steps.RegisterStatic(map[string]any{"urn:a": 1.0}); err != nil {
		t.Fatal(err)
	}
	same := func(next activities.ExecutorFunc) activities.ExecutorFunc { return next }
	can := activities.CapabilitiesOf(activities.Wrap(c, same), activities.Node{Type: "step"})
	if got := can.Targets(); !slices.Equal(got, []string{"urn:a", "urn:x"}) {
		t.Errorf("targets %q", got)
	}
	if c.Capabilities(activities.Node{Type: "llm_call"}).Targets != nil {
		t.Error("an executor without targets has some")
	}
}

// TestAStepIsGivenTheMembersOfItsNames: what a workflow has checked under one name does not reach a handler under another spelling.
func TestAStepIsGivenTheMembersOfItsNames(t *testing.T) {
	t.Parallel()
	type refund struct {
		Amount float64 `json:"amount"`
	}
	r := activities.NewStepRegistry()
	err := activities.RegisterStep(r, "refund", func(_ context.Context, call activities.Call[refund]) (refund, error) { return call.Input, nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []map[string]any{{"Amount": 900.0}, {"AMOUNT": 900.0, "amount": 0.0}} {
		res, err := r.Execute(t.Context(), activities.Request{
			NodeType: "step", Config: map[string]any{"handler": "refund"}, State: func() map[string]any { return state },
		})
		if err != nil || res.Output.(refund).Amount != 0 {
			t.Errorf("%v became %+v, %v", state, res.Output, err)
		}
	}
}
