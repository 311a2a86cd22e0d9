package delegate

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Defaults of A2AConfig.
const (
	DefaultPollInterval    = 500 * time.Millisecond
	DefaultMaxPollInterval = 15 * time.Second
	DefaultPollTimeout     = 2 * time.Minute
	DefaultRequestTimeout  = 30 * time.Second
	DefaultMaxAnswerBytes  = 1 << 20
)

// maxPollFailures is how many polls in a row may fail in a passing way before the delegation is given up. The task
// runs at the agent meanwhile, so that one unlucky poll must not lose it.
const maxPollFailures = 3

// A2AConfig configures an agent's endpoint. BaseURL is required, and APIKey unless NoAuth is set.
type A2AConfig struct {
	// BaseURL is the absolute http or https address of the agent: that above /tasks for A2AHTTP, that above
	// /.well-known/agent-card.json, or of the JSON-RPC endpoint itself, for A2A. White space around it and slashes at its
	// end are dropped.
	BaseURL string
	// APIKey gives the bearer key. It is asked at every delegation, so that a changed key needs no restart. An error or
	// a blank key fails the attempt with A2A_CREDENTIALS_MISSING.
	APIKey func(ctx context.Context) (string, error)
	// NoAuth sends no key.
	NoAuth bool
	// PollInterval is the time between two polls of a task, 0 meaning DefaultPollInterval. If MaxPollInterval is larger,
	// the time grows by half with every poll up to it; 0 means DefaultMaxPollInterval for A2A, and PollInterval for A2AHTTP.
	PollInterval, MaxPollInterval time.Duration
	// PollTimeout is the time that a task may take before its attempt fails; the time in which an agent waits for an answer
	// does not count. 0 means DefaultPollTimeout for A2AHTTP, and no limit for A2A.
	PollTimeout time.Duration
	// RequestTimeout bounds each HTTP request, the reading of the answer included. 0 means DefaultRequestTimeout.
	RequestTimeout time.Duration
	// MaxAnswerBytes bounds each answer. 0 means DefaultMaxAnswerBytes.
	MaxAnswerBytes int64
	// Client performs the requests; nil means a client of its own that follows no redirects, so that the key goes
	// nowhere else.
	Client *http.Client
	// Wait waits for d or until ctx ends, whose error it then gives; nil means a timer. Tests replace it.
	Wait func(ctx context.Context, d time.Duration) error
}

// A2AHTTP delegates over the HTTP task form (spec: activities, 10): it submits a task with POST {base}/tasks and asks
// GET {base}/tasks/{id} until the task has ended. It ends at once when its context does; the form has no request to
// cancel a task, which then works on at the agent.
//
// A poll that fails in a passing way (network, 408, 429, 5xx) is repeated, three times in a row at most. A submit is
// not: whether it is tried again is the node's retry policy's choice.
type A2AHTTP struct {
	base   string
	config A2AConfig
}

// NewA2AHTTP checks the configuration. The error is *problem.Error with code A2A_CONFIG_INVALID.
func NewA2AHTTP(c A2AConfig) (*A2AHTTP, error) {
	base, err := c.check()
	if err != nil {
		return nil, err
	}
	if c.PollTimeout <= 0 {
		c.PollTimeout = DefaultPollTimeout
	}
	c.MaxPollInterval = max(c.MaxPollInterval, c.PollInterval)
	return &A2AHTTP{base: base, config: c}, nil
}

// check fills in the defaults that all forms share, and gives the address.
func (c *A2AConfig) check() (base string, err error) {
	base = strings.TrimRight(strings.TrimSpace(c.BaseURL), "/")
	if base == "" {
		return "", problem.New(problem.A2AConfigInvalid, "the A2A configuration has no baseUrl").
			WithHint("set baseUrl to the agent's address, such as \"https://agents.example/v1\"")
	}
	u, err := url.Parse(base)
	if err != nil {
		return "", problem.New(problem.A2AConfigInvalid, "the A2A baseUrl is not an address") // the text may hold a password
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", problem.New(problem.A2AConfigInvalid, "the A2A baseUrl %q is not an absolute http or https address without query", u.Redacted())
	}
	switch {
	case c.APIKey == nil && !c.NoAuth:
		return "", problem.New(problem.A2AConfigInvalid, "the A2A configuration names no key").
			WithHint("set apiKeyEnv or apiKeySecretRef, or noAuth for an agent that asks for none")
	case c.APIKey != nil && c.NoAuth:
		return "", problem.New(problem.A2AConfigInvalid, "the A2A configuration names a key and has noAuth")
	}
	if c.PollInterval <= 0 {
		c.PollInterval = DefaultPollInterval
	}
	if c.RequestTimeout <= 0 {
		c.RequestTimeout = DefaultRequestTimeout
	}
	if c.MaxAnswerBytes <= 0 {
		c.MaxAnswerBytes = DefaultMaxAnswerBytes
	}
	if c.Client == nil {
		c.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	if c.Wait == nil {
		c.Wait = sleep
	}
	return base, nil
}

// key gives the key for one exchange, "" with NoAuth.
func (c *A2AConfig) key(ctx context.Context, req Request) (string, error) {
	if req.Protocol != "a2a" {
		return "", activities.Fail(problem.DelegateProtocolUnsupported, "delegate protocol %q is not spoken here; this executor speaks a2a", req.Protocol)
	}
	key := ""
	if !c.NoAuth {
		var err error
		if key, err = c.APIKey(ctx); err != nil {
			failure := activities.Fail(problem.A2ACredentialsMissing, "the A2A key cannot be read")
			failure.Err = err
			return "", failure
		}
		// Only a whole key may reach a header; a line end in it would be refused by the HTTP client with the key in the text.
		if key = strings.TrimSpace(key); key == "" || strings.ContainsAny(key, "\r\n") {
			return "", activities.Fail(problem.A2ACredentialsMissing, "the A2A key is blank or not a single line")
		}
	}
	if strings.TrimSpace(req.AgentID) == "" {
		return "", activities.Fail(problem.A2AConfigInvalid, "delegate node %q names no agent_id", req.NodeID)
	}
	return key, nil
}

// pollAfter is when a task is to be looked at again after a number of polls that found nothing new.
func (c *A2AConfig) pollAfter(polls int) time.Duration {
	d := c.PollInterval
	for ; polls > 0 && d < c.MaxPollInterval; polls-- {
		d += d / 2
	}
	return max(min(d, c.MaxPollInterval), c.PollInterval)
}

func (a *A2AHTTP) delegation(ctx context.Context, req Request) (*delegation, error) {
	key, err := a.config.key(ctx, req)
	if err != nil {
		return nil, err
	}
	return &delegation{A2AHTTP: a, req: req, key: key}, nil
}

// Delegate submits the task and waits for its end.
func (a *A2AHTTP) Delegate(ctx context.Context, req Request) (Result, error) {
	d, err := a.delegation(ctx, req)
	if err != nil {
		return Result{}, err
	}
	task, err := d.submit(ctx)
	if err != nil {
		return Result{}, d.explain(ctx, err)
	}
	d.id = task.id // polls may name another; the submit's counts
	if task, err = d.await(ctx, task); err != nil {
		return Result{}, d.explain(ctx, err)
	}
	return Result{Output: task.result(), ExternalTaskID: d.id}, nil
}

// delegation is one call of Delegate.
type delegation struct {
	*A2AHTTP
	req Request
	key string
	id  string
}

// await polls until the task has ended, at once first and then at intervals.
func (d *delegation) await(ctx context.Context, task task) (task, error) {
	waiting, stop := context.WithTimeout(ctx, d.config.PollTimeout)
	defer stop()
	failures := 0
	for polled := false; ; polled = true {
		d.heartbeat(task)
		if ended, err := task.ended(polled); ended {
			return task, err
		}
		if polled {
			if err := d.config.Wait(waiting, d.config.PollInterval); err != nil {
				return task, d.late(ctx, task, err)
			}
		}
		next, err := d.poll(waiting)
		switch {
		case err == nil:
			task, failures = next, 0
		case waiting.Err() != nil:
			return task, d.late(ctx, task, waiting.Err())
		case !passing(err):
			return task, err
		default:
			if failures++; failures >= maxPollFailures {
				return task, err
			}
		}
	}
}

// late explains why the waiting ended: the poll timeout is the agent's failure, the end of the caller's context is not.
func (d *delegation) late(ctx context.Context, t task, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return activities.Fail(problem.A2AProviderError, "task %q did not end within %v; its last status was %q", d.id, d.config.PollTimeout, t.status)
}

func (d *delegation) heartbeat(t task) {
	if d.req.Heartbeat != nil {
		d.req.Heartbeat(map[string]any{"externalTaskId": d.id, "status": t.status})
	}
}

func (d *delegation) explain(ctx context.Context, err error) error { return explain(ctx, d.req, err) }

// explain gives an error its code: what the caller's context ended is a timeout or a cancellation, whatever text the
// transport has for it. That an agent cannot be reached may pass.
func explain(ctx context.Context, req Request, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		failure := activities.Fail(problem.Timeout, "agent %q did not answer by the deadline", req.AgentID)
		failure.Err = ctx.Err()
		return failure
	case ctx.Err() != nil:
		failure := activities.Fail(problem.ActivityCancelled, "the delegation to %q was cancelled", req.AgentID)
		failure.Err = ctx.Err()
		return failure
	}
	if failure, ok := errors.AsType[*activities.Failure](err); ok {
		return failure
	}
	failure := activities.Fail(problem.A2AProviderError, "agent %q cannot be reached", req.AgentID)
	failure.Err, failure.Retryable = err, activities.RetrySensible
	return failure
}

// sleep is the default of A2AConfig.Wait.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// HasTask is always true.
func (a *A2AHTTP) HasTask(Request) bool { return true }

// Send submits the task.
func (a *A2AHTTP) Send(ctx context.Context, req Request) (Task, error) {
	d, err := a.delegation(ctx, req)
	if err != nil {
		return Task{}, err
	}
	task, err := d.submit(ctx)
	if err != nil {
		return Task{}, d.explain(ctx, err)
	}
	return a.stands(task, false, time.Millisecond) // the form polls at once
}

// Poll asks for the task.
func (a *A2AHTTP) Poll(ctx context.Context, req Request, ref TaskRef) (Task, error) {
	d, err := a.delegation(ctx, req)
	if err != nil {
		return Task{}, err
	}
	d.id = ref.ID
	task, err := d.poll(ctx)
	if err != nil {
		return Task{}, d.explain(ctx, err)
	}
	stands, err := a.stands(task, true, a.config.pollAfter(ref.Polls))
	stands.ID = ref.ID // a poll may name another
	if err == nil && stands.State == TaskWorking && ref.Waited > a.config.PollTimeout {
		return Task{}, tooLate(ref, a.config.PollTimeout, task.status)
	}
	return stands, err
}

func tooLate(ref TaskRef, limit time.Duration, status string) error {
	return activities.Fail(problem.A2AProviderError, "task %q did not end within %v; its last status was %q", ref.ID, limit, status)
}

func (a *A2AHTTP) stands(t task, polled bool, next time.Duration) (Task, error) {
	ended, err := t.ended(polled)
	if err != nil {
		return Task{}, err
	}
	if ended {
		return Task{State: TaskCompleted, ID: t.id, Output: t.result()}, nil
	}
	return Task{ID: t.id, PollAfter: next}, nil
}

// Answer always fails: the form has no request for it, and Poll never gives TaskAsks.
func (a *A2AHTTP) Answer(_ context.Context, _ Request, ref TaskRef, _ map[string]any) (Task, error) {
	return Task{}, activities.Fail(problem.A2AProviderError, "task %q cannot be answered in the HTTP task form", ref.ID)
}

// Cancel always fails: the form has no request for it.
func (a *A2AHTTP) Cancel(context.Context, Request, TaskRef) error {
	return pointless(problem.A2AProviderError, "the HTTP task form has no request to cancel a task")
}

var _ Tasks = (*A2AHTTP)(nil)
