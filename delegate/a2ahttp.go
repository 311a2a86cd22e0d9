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
	DefaultPollInterval   = 500 * time.Millisecond
	DefaultPollTimeout    = 2 * time.Minute
	DefaultRequestTimeout = 30 * time.Second
	DefaultMaxAnswerBytes = 1 << 20
)

// maxPollFailures is how many polls in a row may fail in a passing way before the delegation is given up. The task
// runs at the agent meanwhile, so that one unlucky poll must not lose it.
const maxPollFailures = 3

// A2AConfig configures an A2AHTTP. BaseURL and APIKey are required.
type A2AConfig struct {
	// BaseURL is the absolute http or https address above /tasks. White space around it and slashes at its
	// end are dropped.
	BaseURL string
	// APIKey gives the bearer key. It is asked at every delegation, so that a changed key needs no restart. An error or
	// a blank key fails the attempt with A2A_CREDENTIALS_MISSING.
	APIKey func(ctx context.Context) (string, error)
	// PollInterval is the time between two polls, PollTimeout the time that a task may take from its first poll on.
	// 0 and less mean the defaults.
	PollInterval, PollTimeout time.Duration
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
	base := strings.TrimRight(strings.TrimSpace(c.BaseURL), "/")
	if base == "" {
		return nil, problem.New(problem.A2AConfigInvalid, "the A2A configuration has no baseUrl").
			WithHint("set baseUrl to the address above /tasks, such as \"https://agents.example/v1\"")
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, problem.New(problem.A2AConfigInvalid, "the A2A baseUrl %q is not an absolute http or https address without query", u.Redacted())
	}
	if c.APIKey == nil {
		return nil, problem.New(problem.A2AConfigInvalid, "the A2A configuration names no key").
			WithHint("set apiKeyEnv or apiKeySecretRef")
	}
	if c.PollInterval <= 0 {
		c.PollInterval = DefaultPollInterval
	}
	if c.PollTimeout <= 0 {
		c.PollTimeout = DefaultPollTimeout
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
	return &A2AHTTP{base: base, config: c}, nil
}

// Delegate submits the task and waits for its end.
func (a *A2AHTTP) Delegate(ctx context.Context, req Request) (Result, error) {
	if req.Protocol != "a2a" {
		return Result{}, activities.Fail(problem.DelegateProtocolUnsupported, "delegate protocol %q is not spoken here; this executor speaks a2a", req.Protocol)
	}
	key, err := a.config.APIKey(ctx)
	if err != nil {
		failure := activities.Fail(problem.A2ACredentialsMissing, "the A2A key cannot be read")
		failure.Err = err
		return Result{}, failure
	}
	// Only a whole key may reach a header; a line end in it would be refused by the HTTP client with the key in the text.
	if key = strings.TrimSpace(key); key == "" || strings.ContainsAny(key, "\r\n") {
		return Result{}, activities.Fail(problem.A2ACredentialsMissing, "the A2A key is blank or not a single line")
	}
	agent := strings.TrimSpace(req.AgentID)
	if agent == "" {
		return Result{}, activities.Fail(problem.A2AConfigInvalid, "delegate node %q names no agent_id", req.NodeID)
	}

	d := &delegation{A2AHTTP: a, req: req, key: key}
	task, err := d.submit(ctx, agent)
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

// explain gives an error its code: what the caller's context ended is a timeout or a cancellation, whatever text the
// transport has for it.
func (d *delegation) explain(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		failure := activities.Fail(problem.Timeout, "agent %q did not answer by the deadline", d.req.AgentID)
		failure.Err = ctx.Err()
		return failure
	case ctx.Err() != nil:
		failure := activities.Fail(problem.ActivityCancelled, "the delegation to %q was cancelled", d.req.AgentID)
		failure.Err = ctx.Err()
		return failure
	}
	if failure, ok := errors.AsType[*activities.Failure](err); ok {
		return failure
	}
	failure := activities.Fail(problem.A2AProviderError, "agent %q cannot be reached", d.req.AgentID)
	failure.Err = err
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

var _ Executor = (*A2AHTTP)(nil)
