package delegate

import (
	"context"
	"sync"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/port"
)

// A2ADetect detects which protocol an agent speaks: with a card the A2A protocol, without one the HTTP task form.
//
// It remembers a card that was served, and a task form that has answered. A missing card is not remembered, since a gateway
// answers 404 as well while an agent starts: the task form is tried, and if that is missing too, or does not answer, the
// attempt fails with a retryable failure, and the next one detects again. So does an attempt that finds neither any more.
type A2ADetect struct {
	rpc  *A2A
	http *A2AHTTP

	mu    sync.Mutex
	found Tasks
}

// NewA2ADetect checks the configuration. The error is *problem.Error with code A2A_CONFIG_INVALID.
func NewA2ADetect(c A2AConfig) (*A2ADetect, error) {
	rpc, err := NewA2A(c)
	if err != nil {
		return nil, err
	}
	rpc.cardOnly = true
	form, err := NewA2AHTTP(c)
	if err != nil {
		return nil, err
	}
	return &A2ADetect{rpc: rpc, http: form}, nil
}

// form returns the form to use. known says that the agent has answered in it before.
func (a *A2ADetect) form(ctx context.Context, req Request) (form Tasks, known bool, err error) {
	a.mu.Lock()
	found := a.found
	a.mu.Unlock()
	if found != nil {
		return found, true, nil
	}
	key, err := a.rpc.config.key(ctx, req)
	if err != nil {
		return nil, false, err
	}
	card, err := a.rpc.config.card(ctx, a.rpc.base, key)
	if err != nil {
		return nil, false, explain(ctx, req, err)
	}
	if card == nil {
		return a.http, false, nil
	}
	a.remember(a.rpc)
	return a.rpc, true, nil
}

func (a *A2ADetect) remember(form Tasks) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.found = form
}

// learn remembers a form that the agent has answered in, forgets one that is missing now, and returns the error of the
// call. ofTask says that the call was about a task: where the form is known, the task may be what is missing.
func (a *A2ADetect) learn(req Request, form Tasks, known, ofTask bool, err error) error {
	switch {
	case err == nil:
		if !known {
			a.remember(form)
		}
		return nil
	case !isMissing(err):
		return err
	case known && ofTask && form == Tasks(a.http):
		return err
	}
	a.remember(nil)
	what := "does not answer at its address any more"
	if !known {
		what = "has neither a card nor tasks at its address"
	}
	failure := activities.Fail(problem.A2AProviderError, "agent %q %s", req.AgentID, what)
	failure.Err, failure.Retryable = err, activities.RetrySensible
	return failure
}

// Describe names the agent's address.
func (a *A2ADetect) Describe(Request) map[string]any {
	return map[string]any{"endpoint": port.Endpoint(a.rpc.base)}
}

// HasTask is always true.
func (a *A2ADetect) HasTask(Request) bool { return true }

// Delegate delegates in the detected form.
func (a *A2ADetect) Delegate(ctx context.Context, req Request) (Result, error) {
	return inForm(ctx, a, req, TaskRef{}, func(form Tasks) (Result, error) { return form.Delegate(ctx, req) })
}

// Send hands the task over in the detected form.
func (a *A2ADetect) Send(ctx context.Context, req Request) (Task, error) {
	return inForm(ctx, a, req, TaskRef{}, func(form Tasks) (Task, error) { return form.Send(ctx, req) })
}

// Poll asks in the form in which the task was sent, if its reference shows that, else in the detected form.
func (a *A2ADetect) Poll(ctx context.Context, req Request, ref TaskRef) (Task, error) {
	return inForm(ctx, a, req, ref, func(form Tasks) (Task, error) { return form.Poll(ctx, req, ref) })
}

// inForm makes a call in the detected form; ref is the zero value if it is about no task. A task that has a context was sent
// in the A2A protocol, whatever is detected now.
func inForm[T any](ctx context.Context, a *A2ADetect, req Request, ref TaskRef, call func(Tasks) (T, error)) (result T, err error) {
	form, known := Tasks(a.rpc), true
	if ref.ContextID == "" {
		if form, known, err = a.form(ctx, req); err != nil {
			return result, err
		}
	}
	result, err = call(form)
	return result, a.learn(req, form, known, ref.ID != "", err)
}

// Answer answers in the A2A protocol: in the other form no agent asks.
func (a *A2ADetect) Answer(ctx context.Context, req Request, ref TaskRef, answer map[string]any) (Task, error) {
	task, err := a.rpc.Answer(ctx, req, ref, answer)
	return task, a.learn(req, a.rpc, true, true, err)
}

// Cancel ends the task in the form in which it was sent.
func (a *A2ADetect) Cancel(ctx context.Context, req Request, ref TaskRef) error {
	_, err := inForm(ctx, a, req, ref, func(form Tasks) (any, error) { return nil, form.Cancel(ctx, req, ref) })
	return err
}

var _ Tasks = (*A2ADetect)(nil)
