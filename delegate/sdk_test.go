package delegate_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func TestSDK(t *testing.T) {
	t.Parallel()
	var s delegate.SDK
	type task struct {
		Lines int `json:"lines"`
	}
	cause := errors.New("the disk is full")
	for id, h := range map[string]delegate.Handler{
		" coder ": func(_ context.Context, req activities.Request) (any, error) {
			return map[string]any{"for": req.CorrelationID}, nil
		},
		"broken": func(context.Context, activities.Request) (any, error) { return nil, cause },
		"coded": func(context.Context, activities.Request) (any, error) {
			return nil, fmt.Errorf("w: %w", &activities.Failure{Code: "QUOTA", Message: "no more"})
		},
	} {
		if err := s.Register(id, h); err != nil {
			t.Fatal(err)
		}
	}
	if err := delegate.RegisterAgent(&s, "counter", func(_ context.Context, call delegate.Call[task]) (task, error) {
		return task{call.Input.Lines + 1}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := s.Agents(); !reflect.DeepEqual(got, []string{"broken", "coded", "coder", "counter"}) {
		t.Errorf("agents %v", got)
	}
	ask := func(agent, protocol string, input map[string]any) (activities.Result, error) {
		return s.Execute(t.Context(), activities.Request{
			ExecutionID: "x", NodeID: "d", AgentID: agent, Protocol: protocol, Input: input, CorrelationID: "x:delegate:d",
		})
	}
	got, err := ask("coder ", "sdk", nil)
	if want := (activities.Result{Output: map[string]any{"for": "x:delegate:d"}, ExternalTaskID: "sdk-task-x-delegate-d"}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := ask("counter", "sdk", map[string]any{"lines": 2.0, "more": true}); err != nil || got.Output != (task{3}) {
		t.Errorf("typed: %+v, %v", got, err)
	}
	for _, c := range []struct {
		agent, protocol string
		input           map[string]any
		code            problem.Code
		text            string
		retry           activities.Retryable
	}{
		{"coder", "a2a", nil, problem.DelegateProtocolUnsupported, "supports sdk", activities.RetryPointless},
		{"nobody", "sdk", nil, problem.DelegateAgentNotFound, "nobody", activities.RetryPointless},
		{"broken", "sdk", nil, problem.DelegateProtocolError, "the disk is full", activities.RetryUnknown},
		{"coded", "sdk", nil, "QUOTA", "no more", activities.RetryUnknown},
		{"counter", "sdk", map[string]any{"lines": "many"}, problem.DelegateProtocolError, "does not fit", activities.RetryPointless},
	} {
		_, err := ask(c.agent, c.protocol, c.input)
		failure, ok := errors.AsType[*activities.Failure](err)
		if !ok || failure.Code != string(c.code) || failure.Retryable != c.retry || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v (%+v), want %s", c.agent, err, failure, c.code)
		}
	}
	if _, err := ask("broken", "sdk", nil); !errors.Is(err, cause) {
		t.Errorf("the cause is lost: %v", err)
	}
	for name, err := range map[string]error{
		"blank": s.Register(" ", func(context.Context, activities.Request) (any, error) { return nil, nil }),
		"nil":   s.Register("x", nil),
		"typed": delegate.RegisterAgent[any, any](&s, "x", nil),
	} {
		if !errors.Is(err, problem.ValidationError) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
