package llmcall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Capabilities names the model's address, for limits, and describes requests. A node that names an agent needs package llmagent.
func (e *Executor) Capabilities(n activities.Node) activities.Capabilities {
	can := activities.Capabilities{Describe: e.describe, Targets: noAgent}
	if d, ok := e.model.(chat.Describer); ok {
		can.Classes = []string{"llm:" + d.Address()}
	}
	if _, named := NamesAgent(n.Config); named {
		can.Missing = activities.MissingTarget
	}
	return can
}

// noAgent returns the targets of an executor that performs only nodes without an agent.
func noAgent() []string { return []string{""} }

// Chat asks the executor's model, without the settings of Config for llm_call nodes.
func (e *Executor) Chat(ctx context.Context, req chat.Request) (chat.Reply, error) {
	return e.model.Chat(ctx, req)
}

// Execute asks the model. It checks the node's type first, then its config and prompts. The error is an *activities.Failure, unless the
// Model returned another one.
func (e *Executor) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	if req.NodeType != "llm_call" {
		return activities.Result{}, activities.Fail(problem.ExecutorUnsupportedNode,
			"node %q is of type %q; the model executor performs only llm_call nodes", req.NodeID, req.NodeType)
	}
	if _, named := NamesAgent(req.Config); named {
		return activities.Result{}, noAgents(req)
	}
	a, err := e.prepare(req)
	if err != nil {
		return activities.Result{}, err
	}
	started := e.config.Now()
	result, err := a.runList(ctx)
	usage := a.usage(e.config.Now().Sub(started))
	if failure, ok := errors.AsType[*activities.Failure](err); ok {
		failed := *failure
		failed.Usage = usage
		return activities.Result{}, &failed
	}
	if err != nil {
		return activities.Result{}, err
	}
	if a.repairs {
		usage["repaired"] = true
	}
	result.Usage = usage
	return result, nil
}

// attempt is one attempt of a node.
type attempt struct {
	*Executor
	req      activities.Request
	node     *node
	messages []chat.Message
	// stateMessage is the index of the message that is the whole state, -1 without one.
	stateMessage int
	// repairs is set if the attempt repairs an answer.
	repairs bool
	meter   chat.Meter
	// beat is the time of the newest heartbeat.
	beat time.Time
}

// prepare checks a request and makes the conversation of its attempt.
func (e *Executor) prepare(req activities.Request) (*attempt, error) {
	n, err := e.readNode(req)
	if err != nil {
		return nil, err
	}
	messages, isState, err := e.messages(req)
	if err != nil {
		return nil, err
	}
	a := &attempt{Executor: e, req: req, node: n, messages: messages, stateMessage: -1}
	if isState {
		a.stateMessage = len(messages) - 1
	}
	if invalid, ok := invalidIn(req.Repair); ok && n.schema != nil {
		a.repairs = true
		a.messages = n.conversation(messages, invalid)
	}
	return a, nil
}

// request returns the question to a model.
func (a *attempt) request(model string) chat.Request {
	n := a.node
	r := chat.Request{
		Model: model, Messages: a.messages, MaxTokens: n.maxTokens, Temperature: n.temperature, TopP: n.topP, Seed: n.seed, Stop: n.stop,
		Key: a.req.IdempotencyKey, Stream: n.stream, Meter: &a.meter,
	}
	if n.schema != nil {
		r.Schema, r.SchemaName = n.rawSchema, n.id
	}
	if n.stream {
		r.OnProgress = a.heartbeats()
	}
	return r
}

// runList asks the models of a node in order: the next one if a model fails as in an outage (chat.Outages). Each is asked once; retries are
// the node's retry policy. A node with one model is a list of one.
func (a *attempt) runList(ctx context.Context) (activities.Result, error) {
	var failed []*activities.Failure
	for _, model := range a.node.models {
		result, err := a.run(ctx, model)
		failure, ok := errors.AsType[*activities.Failure](err)
		if !ok || len(a.node.models) == 1 || ctx.Err() != nil || !isOutage(failure) {
			return result, err
		}
		failed = append(failed, failure)
	}
	return activities.Result{}, a.allFailed(failed)
}

// isOutage reports whether another model may answer. The models of a list share one chat.Model, and so its key.
func isOutage(f *activities.Failure) bool {
	class, _ := chat.ClassIn(f.Data)
	return f.Code != string(problem.LLMCredentialsMissing) && slices.Contains(chat.Outages(), class)
}

// allFailed returns the failure of all models of a list: the first one's, followed by the texts of the others.
func (a *attempt) allFailed(failed []*activities.Failure) *activities.Failure {
	all := *failed[0]
	class, _ := chat.ClassIn(all.Data)
	all.Code = class.Code(all.Code)
	room := problem.MaxText / len(failed)
	all.Message = problem.Excerpt(all.Message, room)
	for i, failure := range failed[1:] {
		all.Message += problem.Excerpt(problem.Format("; then %s: %s %s", a.node.models[i+1], failure.Code, failure.Message), room)
		all.RetryAfter = max(all.RetryAfter, failure.RetryAfter)
		if failure.Retryable != activities.RetryPointless {
			all.Retryable = failure.Retryable
		}
	}
	return &all
}

// run asks a model once. An answer that violates the output_schema asks for a repair, unless this attempt is one.
func (a *attempt) run(ctx context.Context, model string) (activities.Result, error) {
	reply, err := a.ask(ctx, model)
	if err != nil {
		return activities.Result{}, err
	}
	output, violation := a.node.output(reply.Text)
	if violation == "" {
		return activities.Result{Output: output}, nil
	}
	violation = problem.Clip(violation, maxViolation)
	if a.node.schema == nil {
		return activities.Result{}, activities.Fail(problem.ActivityOutputInvalid, "model %q: %s", model, violation)
	}
	cut := reply.Finish == chat.FinishLength
	failure := a.unusable(model, violation, cut)
	if !a.config.NoRepair && !cut && !a.repairs {
		failure.Repair = invalidAnswer{reply.Text, output, violation}.repair()
	}
	return activities.Result{}, failure
}

// ask asks a model and keeps the usage of its answer. An answer without text is an error.
func (a *attempt) ask(ctx context.Context, model string) (chat.Reply, error) {
	sent := a.meter.Requests
	reply, err := a.model.Chat(ctx, a.request(model))
	unmetered := a.meter.Requests == sent
	if err != nil {
		failure, ok := errors.AsType[*activities.Failure](err)
		if !ok {
			return chat.Reply{}, err
		}
		if unmetered && failure.Usage != nil {
			a.meter.Requests++
			a.meter.Usage = failure.Usage
		}
		return chat.Reply{}, a.nodeFailure(failure)
	}
	if unmetered {
		a.meter.Requests++
		a.meter.Usage = usageOf(model, reply)
	}
	if reply.Text != "" {
		return reply, nil
	}
	text := ""
	switch {
	case len(reply.Calls) > 0:
		text = "the model called a tool instead of answering, and llm_call has none"
	case reply.NoText:
		text = fmt.Sprintf("the answer has no text as its content (finish_reason %q)", a.meter.Usage["finish_reason"])
	default:
		return reply, nil
	}
	failure := activities.Fail(problem.LLMProviderError, "model %q: %s", model, text)
	failure.Data = map[string]any{chat.DataClass: string(chat.ClassAnswer)}
	return chat.Reply{}, failure
}

// nodeFailure returns a failure of the model as llm_call records it: a conversation that is too large, or an overloaded provider, has no
// code or cause of its own.
func (a *attempt) nodeFailure(f *activities.Failure) *activities.Failure {
	failure := *f
	switch failure.Code {
	case chat.CodeContextExceeded:
		failure.Code = string(problem.LLMProviderError)
	case string(problem.LLMConfigInvalid):
		failure.Message = fmt.Sprintf("llm_call %q: %s", a.node.id, failure.Message)
	}
	if errors.Is(failure.Err, chat.ErrOverloaded) {
		failure.Err = nil
	}
	return &failure
}

// unusable returns the failure of an answer that violates the output_schema. The engine records it as OUTPUT_SCHEMA_VIOLATION.
func (a *attempt) unusable(model, violation string, cut bool) *activities.Failure {
	switch {
	case cut:
		// A second answer would be cut at the same place.
		violation += " (the model stopped at its token limit; raise config.max_tokens)"
	case a.repairs:
		violation += " (after a request to repair it)"
	}
	return activities.Fail(problem.LLMOutputInvalid, "model %q: %s", model, violation)
}

// heartbeats returns a function that reports the progress of a streamed answer, nil without a listener.
func (a *attempt) heartbeats() func(received int) {
	if a.req.Heartbeat == nil {
		return nil
	}
	return func(received int) {
		if now := a.config.Now(); now.Sub(a.beat) >= a.config.HeartbeatInterval {
			a.beat = now
			a.req.Heartbeat(map[string]any{"received_bytes": received})
		}
	}
}

// usage returns the usage of the attempt, nil if no model answered: that of the newest answer, the number of requests, and the milliseconds
// they took.
func (a *attempt) usage(took time.Duration) map[string]any {
	if a.meter.Usage == nil {
		return nil
	}
	u := maps.Clone(a.meter.Usage)
	u["requests"], u["duration_ms"] = a.meter.Requests, took.Milliseconds()
	return u
}

// usageOf returns the usage of a reply whose Model ignores the Meter.
func usageOf(model string, r chat.Reply) map[string]any {
	u := map[string]any{"model": cmp.Or(r.Model, model), "finish_reason": string(cmp.Or(r.Finish, chat.FinishStop))}
	if n := r.Usage; n.Prompt+n.Completion > 0 {
		u["prompt_tokens"], u["completion_tokens"], u["total_tokens"] = n.Prompt, n.Completion, n.Prompt+n.Completion
		if n.Cached > 0 {
			u["cached_tokens"] = n.Cached
		}
		if n.Estimated {
			u["estimated"] = true
		}
	}
	return u
}

var _ chat.Model = (*Executor)(nil)
