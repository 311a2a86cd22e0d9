package delegate

import (
	"context"
	"net/http"
	"sync"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// A2A delegates to one agent that speaks the A2A protocol, version 0.3, as JSON-RPC 2.0 over HTTP (spec: activities,
// 16.4): message/send hands the task over without waiting for its end, tasks/get asks for its state, message/send on
// the same task answers an agent that asks, tasks/cancel ends it.
//
// Where the agent is, its card says: BaseURL/.well-known/agent-card.json, or agent.json of older agents. A card that names
// another host is rejected, since the key must not go there. Without a card BaseURL is the address itself.
//
// The delegate input goes out as a data part, and its field "text" (or "task", "prompt" or "message") as a text part
// besides, for agents that read nothing else. The idempotency key of the attempt is the message's id, by which an agent
// can recognise a message that was sent twice; the correlation id is in the metadata.
//
// Of the artifacts, data parts are merged, text parts are joined as field "text", and files are listed as field "files".
type A2A struct {
	base   string
	config A2AConfig

	mu      sync.Mutex
	address string // of the JSON-RPC endpoint; "" until it is known
}

// NewA2A checks the configuration. The error is *problem.Error with code A2A_CONFIG_INVALID.
func NewA2A(c A2AConfig) (*A2A, error) {
	base, err := c.check()
	if err != nil {
		return nil, err
	}
	if c.MaxPollInterval <= 0 {
		c.MaxPollInterval = DefaultMaxPollInterval
	}
	c.MaxPollInterval = max(c.MaxPollInterval, c.PollInterval)
	return &A2A{base: base, config: c}, nil
}

// Capabilities returns the tasks of the agent, and names its address.
func (a *A2A) Capabilities(activities.Node) activities.Capabilities {
	return activities.Capabilities{
		Tasks: a,
		Describe: func(activities.Request) map[string]any {
			return map[string]any{"endpoint": activities.Endpoint(a.base)}
		},
	}
}

// Send hands the task over.
func (a *A2A) Send(ctx context.Context, req activities.Request) (activities.Task, error) {
	return a.message(ctx, req, activities.TaskRef{}, req.Input)
}

// Answer sends a further message on the task. If the agent rejects it, because it has continued by itself or takes no
// message now, the task's state counts: an agent that still asks may be answered again.
func (a *A2A) Answer(ctx context.Context, req activities.Request, ref activities.TaskRef, answer map[string]any) (activities.Task, error) {
	task, err := a.message(ctx, req, ref, answer)
	if rpc := rpcErrorOf(err); rpc != nil && rpc.code != rpcTaskNotFound {
		if req.Heartbeat != nil {
			req.Heartbeat(map[string]any{"externalTaskId": ref.ID, "answerRefused": rpc.text})
		}
		task, err = a.Poll(ctx, req, activities.TaskRef{ID: ref.ID, ContextID: ref.ContextID})
	}
	task.ID = ref.ID
	if task.ContextID == "" {
		task.ContextID = ref.ContextID
	}
	return task, err
}

func (a *A2A) message(ctx context.Context, req activities.Request, ref activities.TaskRef, content map[string]any) (activities.Task, error) {
	message := map[string]any{
		"kind": "message", "role": "user", "messageId": req.IdempotencyKey, "parts": partsOf(content),
		"metadata": map[string]any{"correlationId": req.CorrelationID, "agentId": req.AgentID},
	}
	if ref.ID != "" {
		message["taskId"] = ref.ID
	}
	if ref.ContextID != "" {
		message["contextId"] = ref.ContextID
	}
	result, err := a.call(ctx, req, "message/send", map[string]any{
		"message": message,
		"configuration": map[string]any{
			"blocking": false, "acceptedOutputModes": []any{"application/json", "text/plain"},
		},
	})
	if err != nil {
		return activities.Task{}, err
	}
	return a.readTask(result, req, ref)
}

// Poll asks for the task.
func (a *A2A) Poll(ctx context.Context, req activities.Request, ref activities.TaskRef) (activities.Task, error) {
	result, err := a.call(ctx, req, "tasks/get", map[string]any{"id": ref.ID, "historyLength": 1.0})
	if err != nil {
		return activities.Task{}, err
	}
	if id, ok := result["id"].(string); ok && result["kind"] != "message" && id != ref.ID {
		return activities.Task{}, activities.Fail(problem.A2AProviderError, "the agent was asked for task %q and answered with task %q", ref.ID, problem.ClipRunes(id, 80))
	}
	task, err := a.readTask(result, req, ref)
	task.ID = ref.ID
	if limit := a.config.PollTimeout; err == nil && task.State == activities.TaskWorking && limit > 0 && ref.Waited > limit {
		return activities.Task{}, tooLate(ref, limit, task.Status)
	}
	return task, err
}

// Cancel asks the agent to end the task. It is not an error if the task has ended.
func (a *A2A) Cancel(ctx context.Context, req activities.Request, ref activities.TaskRef) error {
	_, err := a.call(ctx, req, "tasks/cancel", map[string]any{"id": ref.ID})
	if rpc := rpcErrorOf(err); rpc != nil && (rpc.code == rpcTaskNotFound || rpc.code == rpcTaskNotCancelable) {
		return nil
	}
	return err
}

// Execute hands the task over and waits for its end; an agent that asks something fails the attempt.
func (a *A2A) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	return a.config.delegate(ctx, a, req)
}

// call performs a JSON-RPC request. A failure quotes the agent.
func (a *A2A) call(ctx context.Context, req activities.Request, method string, params map[string]any) (map[string]any, error) {
	key, err := a.config.key(ctx, req)
	if err != nil {
		return nil, err
	}
	address, err := a.endpoint(ctx, key)
	if err != nil {
		return nil, explain(ctx, req, err)
	}
	id := req.IdempotencyKey
	body := jsonvalue.Canonical(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	x := exchange{method: http.MethodPost, url: address, body: body, key: key}
	if method == "message/send" {
		x.idempotency = req.IdempotencyKey
	}
	answer, err := a.config.exchange(ctx, x)
	a.learn(address, err)
	if err != nil {
		return nil, explain(ctx, req, otherTransport(err, "http-tasks"))
	}
	result, err := parseRPC(answer, id)
	return result, otherTransport(err, "http-tasks")
}

// endpoint returns the address of the agent's JSON-RPC interface, asking its card the first time.
func (a *A2A) endpoint(ctx context.Context, key string) (string, error) {
	a.mu.Lock()
	address := a.address
	a.mu.Unlock()
	if address != "" {
		return address, nil
	}
	card, err := a.config.card(ctx, a.base, key)
	if err != nil {
		return "", err
	}
	address = a.base
	if card != nil {
		if address, err = card.jsonRPC(a.base); err != nil {
			return "", err
		}
	}
	return address, nil
}

// learn remembers an address that answered, and forgets one that is gone, so that the next call reads the card again. A gateway
// answers 404 while an agent starts, for its card too.
func (a *A2A) learn(address string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.address = address
	case isMissing(err):
		a.address = ""
	}
}

var _ activities.Tasks = (*A2A)(nil)
