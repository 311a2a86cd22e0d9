package delegate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// Defaults of A2AConfig.
const (
	DefaultPollInterval    = 500 * time.Millisecond
	DefaultMaxPollInterval = 15 * time.Second
	DefaultPollTimeout     = 2 * time.Minute
	DefaultRequestTimeout  = 30 * time.Second
	DefaultMaxAnswerBytes  = 1 << 20
)

// A2AConfig configures an agent's endpoint. BaseURL is required, and APIKey unless NoAuth is set.
type A2AConfig struct {
	// BaseURL is the absolute http or https address of the agent: that above /tasks for A2AHTTP, that above
	// /.well-known/agent-card.json, or of the JSON-RPC endpoint itself, for A2A. White space around it and slashes at its
	// end are dropped.
	BaseURL string
	// APIKey returns the bearer key. It is called at every delegation, so that a changed key needs no restart. An error or
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
	// Wait waits for d or until ctx ends, whose error it then returns; nil means a timer. Tests replace it.
	Wait func(ctx context.Context, d time.Duration) error
}

// A2AHTTP delegates over the HTTP task form (spec: activities, 10): it submits a task with POST {base}/tasks and asks
// GET {base}/tasks/{id} until the task has ended. It ends at once when its context does; the form has no request to
// cancel a task, which then works on at the agent.
//
// A poll that fails with a transient error (network, 408, 429, 5xx) is repeated, three times in a row at most. A submit is
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
	c.PollTimeout = cmp.Or(max(c.PollTimeout, 0), DefaultPollTimeout)
	c.MaxPollInterval = max(c.MaxPollInterval, c.PollInterval)
	return &A2AHTTP{base: base, config: c}, nil
}

// check fills in the defaults that all forms share, and returns the address.
func (c *A2AConfig) check() (base string, err error) {
	base = strings.TrimRight(strings.TrimSpace(c.BaseURL), "/")
	if base == "" {
		return "", problem.New(problem.A2AConfigInvalid, "the A2A configuration has no baseUrl").
			WithHint("set baseUrl to the agent's address, such as \"https://agents.example/v1\"")
	}
	u, err := url.Parse(base)
	if err != nil {
		return "", problem.New(problem.A2AConfigInvalid, "the A2A baseUrl must be an absolute http or https address") // the text may hold a password
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", problem.New(problem.A2AConfigInvalid, "the A2A baseUrl %q must be an absolute http or https address without query", u.Redacted())
	}
	switch {
	case c.APIKey == nil && !c.NoAuth:
		return "", problem.New(problem.A2AConfigInvalid, "the A2A configuration must have a key or noAuth").
			WithHint("set apiKeyEnv or apiKeySecretRef, or noAuth for an agent that needs no key")
	case c.APIKey != nil && c.NoAuth:
		return "", problem.New(problem.A2AConfigInvalid, "the A2A configuration cannot have both a key and noAuth")
	}
	c.PollInterval = cmp.Or(max(c.PollInterval, 0), DefaultPollInterval)
	c.RequestTimeout = cmp.Or(max(c.RequestTimeout, 0), DefaultRequestTimeout)
	c.MaxAnswerBytes = cmp.Or(max(c.MaxAnswerBytes, 0), DefaultMaxAnswerBytes)
	if c.Client == nil {
		c.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	if c.Wait == nil {
		c.Wait = wait.For
	}
	return base, nil
}

// key returns the key for one exchange, "" with NoAuth.
func (c *A2AConfig) key(ctx context.Context, req activities.Request) (string, error) {
	if req.Protocol != "a2a" {
		return "", activities.Fail(problem.DelegateProtocolUnsupported, "unsupported delegate protocol %q: this executor supports a2a", req.Protocol)
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
		return "", activities.Fail(problem.A2AConfigInvalid, "delegate node %q must have an agent_id", req.NodeID)
	}
	return key, nil
}

// pollAfter is the time until the next poll after a number of polls without change.
func (c *A2AConfig) pollAfter(polls int) time.Duration {
	d := c.PollInterval
	for ; polls > 0 && d < c.MaxPollInterval; polls-- {
		d += d / 2
	}
	return max(min(d, c.MaxPollInterval), c.PollInterval)
}

// explain turns an error into a failure with a code: a timeout or a cancellation if the caller's context has ended,
// whatever the transport says. An agent that cannot be reached is worth another attempt.
func explain(ctx context.Context, req activities.Request, err error) error {
	if ctx.Err() != nil {
		return activities.Interrupted(ctx, problem.Timeout, fmt.Sprintf("the delegation to %q", req.AgentID))
	}
	if failure, ok := errors.AsType[*activities.Failure](err); ok {
		return failure
	}
	failure := activities.Fail(problem.A2AProviderError, "agent %q cannot be reached", req.AgentID)
	failure.Err, failure.Retryable = err, activities.RetrySensible
	return failure
}

// Capabilities returns the tasks of the agent, and names its address.
func (a *A2AHTTP) Capabilities(activities.Node) activities.Capabilities {
	return activities.Capabilities{
		Tasks: a,
		Describe: func(activities.Request) map[string]any {
			return map[string]any{"endpoint": activities.Endpoint(a.base)}
		},
	}
}

// Execute submits the task and waits for its end.
func (a *A2AHTTP) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	return a.config.delegate(ctx, a, req)
}

// Send submits the task (spec: activities, 10.2).
func (a *A2AHTTP) Send(ctx context.Context, req activities.Request) (activities.Task, error) {
	input := req.Input
	if input == nil {
		input = map[string]any{}
	}
	answer, err := a.exchange(ctx, req, http.MethodPost, "/tasks", jsonvalue.Canonical(map[string]any{
		"agent_id": strings.TrimSpace(req.AgentID), "correlation_id": req.CorrelationID, "input": input,
	}))
	if err != nil {
		return activities.Task{}, err
	}
	return answer.task(false, pollAtOnce)
}

// Poll asks for the task.
func (a *A2AHTTP) Poll(ctx context.Context, req activities.Request, ref activities.TaskRef) (activities.Task, error) {
	answer, err := a.exchange(ctx, req, http.MethodGet, "/tasks/"+escapeComponent(ref.ID), nil)
	if err != nil {
		return activities.Task{}, err
	}
	task, err := answer.task(true, a.config.pollAfter(ref.Polls))
	task.ID = ref.ID // a poll may name another
	if err == nil && task.State == activities.TaskWorking && ref.Waited > a.config.PollTimeout {
		return activities.Task{}, tooLate(ref, a.config.PollTimeout, answer.status)
	}
	return task, err
}

func (a *A2AHTTP) exchange(ctx context.Context, req activities.Request, method, path string, body []byte) (httpTask, error) {
	key, err := a.config.key(ctx, req)
	if err != nil {
		return httpTask{}, err
	}
	text, err := a.config.exchange(ctx, exchange{method, a.base + path, body, key, req.IdempotencyKey})
	if err != nil {
		if method == http.MethodPost {
			err = otherTransport(err, "jsonrpc")
		}
		return httpTask{}, explain(ctx, req, err)
	}
	return parseTask(text)
}

// Answer always fails: the form has no request for it, and Poll never returns TaskAsks.
func (a *A2AHTTP) Answer(_ context.Context, _ activities.Request, ref activities.TaskRef, _ map[string]any) (activities.Task, error) {
	return activities.Task{}, activities.Fail(problem.A2AProviderError, "task %q cannot be answered in the HTTP task form", ref.ID)
}

// Cancel always fails: the form has no request for it.
func (a *A2AHTTP) Cancel(context.Context, activities.Request, activities.TaskRef) error {
	return permanent(problem.A2AProviderError, "the HTTP task form has no request to cancel a task")
}

var _ activities.Tasks = (*A2AHTTP)(nil)
