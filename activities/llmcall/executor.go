package llmcall

import (
	"context"
	"slices"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Capabilities names the endpoint, for limits, and describes requests. A node that names an agent is not performed: package
// llmagent performs it.
func (e *Executor) Capabilities(n activities.Node) activities.Capabilities {
	can := activities.Capabilities{Classes: []string{"llm:" + e.config.BaseURL}, Describe: e.describe}
	if _, named := NamesAgent(n.Config); named {
		can.Missing = activities.MissingTarget
	}
	return can
}

// Execute asks the model. Errors are found in this order: the node's type, its config and prompts, the key, the
// call. Errors are *activities.Failure.
func (e *Executor) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	if req.NodeType != "llm_call" {
		return activities.Result{}, activities.Fail(problem.ExecutorUnsupportedNode,
			"node %q is of type %q; the model executor performs only llm_call nodes", req.NodeID, req.NodeType)
	}
	if _, named := NamesAgent(req.Config); named {
		return activities.Result{}, noAgents(req)
	}
	c, messages, err := e.prepare(req)
	if err != nil {
		return activities.Result{}, err
	}
	if c.key, err = e.key(ctx); err != nil {
		return activities.Result{}, err
	}
	c.scrub = newScrubber(c.key)
	c.heard = c.heartbeats()
	started := e.config.Now()
	result, failure := c.runList(ctx, messages)
	usage := c.usage(e.config.Now().Sub(started))
	if failure != nil {
		failure.Usage = usage
		return activities.Result{}, failure
	}
	if c.repairs {
		usage["repaired"] = true
	}
	result.Usage = usage
	return result, nil
}

// attempt is one attempt of a node.
type attempt struct {
	call
	req  activities.Request
	node *node
	// stateMessage is the number of the message that is the whole state, 0 without such a message.
	stateMessage int
	// repairs says that the attempt is to put an answer right.
	repairs bool
}

// prepare makes the attempt of a request, but for its key, and the conversation that it sends.
func (e *Executor) prepare(req activities.Request) (*attempt, []openai.ChatCompletionMessage, error) {
	n, err := e.readNode(req)
	if err != nil {
		return nil, nil, err
	}
	messages, isState, err := e.messages(req)
	if err != nil {
		return nil, nil, err
	}
	c := &attempt{call: call{Executor: e, model: n.model, stream: n.stream, idempotency: req.IdempotencyKey}, req: req, node: n}
	if isState {
		c.stateMessage = len(messages)
	}
	if said, ok := refusedIn(req.Repair); ok && n.schema != nil {
		c.repairs = true
		messages = n.conversation(messages, said)
	}
	return c, messages, nil
}

// key asks for the key of this attempt.
func (e *Executor) key(ctx context.Context) (Secret, error) {
	if e.config.NoAuth {
		return Secret{}, nil
	}
	key, err := e.config.APIKey(ctx)
	if err != nil {
		failure := activities.Fail(problem.LLMCredentialsMissing, "the key of the model provider cannot be read")
		failure.Err, failure.Data = err, classData(chat.ClassCredentials, 0)
		return Secret{}, failure
	}
	// The HTTP client would refuse another key with an error of its own, after the prompt was made ready.
	if key = NewSecret(key.value); !key.sendable() {
		failure := activities.Fail(problem.LLMCredentialsMissing, "the key of the model provider is blank, or holds characters that no header may have")
		failure.Data = classData(chat.ClassCredentials, 0)
		return Secret{}, failure
	}
	return key, nil
}

// runList asks the models of a list, one after the other: the next one where the one before fails as in an outage (chat.Outages). Each is asked
// once; whether all are asked again is the choice of the node's retry policy. A node with one model is a list of one.
func (c *attempt) runList(ctx context.Context, messages []openai.ChatCompletionMessage) (activities.Result, *activities.Failure) {
	var failed []*activities.Failure
	for _, model := range c.node.models {
		c.model, c.node.model = model, model
		result, err := c.run(ctx, messages)
		if err == nil {
			return result, nil
		}
		failure := c.explain(ctx, err)
		class, _ := chat.ClassIn(failure.Data)
		if len(c.node.models) == 1 || ctx.Err() != nil || !slices.Contains(chat.Outages(), class) {
			return activities.Result{}, failure
		}
		failed = append(failed, failure)
	}
	return activities.Result{}, c.allFailed(failed)
}

// allFailed is the failure of all models of a list: the first one's, with the texts of the others behind it.
func (c *attempt) allFailed(failed []*activities.Failure) *activities.Failure {
	all := *failed[0]
	class, _ := chat.ClassIn(all.Data)
	all.Code = class.Code(all.Code)
	room := problem.MaxText / len(failed)
	all.Message = problem.Excerpt(all.Message, room)
	for i, failure := range failed[1:] {
		all.Message += problem.Excerpt(problem.Format("; then %s: %s %s", c.node.models[i+1], failure.Code, failure.Message), room)
		all.RetryAfter = max(all.RetryAfter, failure.RetryAfter)
		if failure.Retryable != activities.RetryPointless {
			all.Retryable = failure.Retryable
		}
	}
	return &all
}

// run asks the model once. An answer that breaks the output_schema asks for a repair, unless this was one.
func (c *attempt) run(ctx context.Context, messages []openai.ChatCompletionMessage) (activities.Result, error) {
	request, err := c.node.request(messages)
	if err != nil {
		return activities.Result{}, err
	}
	r, err := c.ask(ctx, request, c.node.wanted())
	if err == nil && r.content == "" {
		err = r.empty()
	}
	if err != nil {
		return activities.Result{}, err
	}
	output, violation := c.node.output(r)
	output = c.scrub.output(output)
	if violation == "" {
		return activities.Result{Output: output}, nil
	}
	violation = problem.Clip(c.scrub.text(violation), maxViolation)
	if c.node.schema == nil {
		return activities.Result{}, activities.Fail(problem.ActivityOutputInvalid, "model %q: %s", c.node.model, violation)
	}
	cut := r.finish == string(openai.FinishReasonLength)
	failure := c.unusable(violation, cut)
	if !c.config.NoRepair && !cut && !c.repairs {
		failure.Repair = refused{c.scrub.answer(r.content), output, violation}.repair()
	}
	return activities.Result{}, failure
}

// unusable is the failure of an answer that breaks the output_schema. The engine records it as OUTPUT_SCHEMA_VIOLATION.
func (c *attempt) unusable(violation string, cut bool) *activities.Failure {
	switch {
	case cut:
		// A second answer would be cut at the same place.
		violation += " (the model stopped at its token limit; raise config.max_tokens)"
	case c.repairs:
		violation += " (after a request to repair it)"
	}
	return activities.Fail(problem.LLMOutputInvalid, "model %q: %s", c.node.model, violation)
}

// heartbeats returns a function that reports the pieces of a streamed answer, nil without a listener.
func (c *attempt) heartbeats() func(string, int) {
	if !c.stream || c.req.Heartbeat == nil {
		return nil
	}
	var beat time.Time
	return func(_ string, received int) {
		if now := c.config.Now(); now.Sub(beat) >= c.config.HeartbeatInterval {
			beat = now
			c.req.Heartbeat(map[string]any{"received_bytes": received})
		}
	}
}
