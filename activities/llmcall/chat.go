package llmcall

import (
	"context"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
)

// Chat asks a model for the next message of a conversation. It shares address, key, limits and knowledge about the provider
// with llm_call, but neither Config.Stream nor MaxPromptBytes: how large a conversation may be is the model's to say. Like Execute, it
// repeats no request that failed.
//
// The usage of a failure has the members that chat.UsageIn reads, also for an answer that broke off.
func (e *Executor) Chat(ctx context.Context, req chat.Request) (chat.Reply, error) {
	request, err := chatRequest(req)
	if err != nil {
		return chat.Reply{}, err
	}
	c := &call{Executor: e, model: req.Model, stream: req.Stream, idempotency: req.Key}
	if c.key, err = e.key(ctx); err != nil {
		return chat.Reply{}, err
	}
	c.scrub = newScrubber(c.key)
	text := scrubbedPieces{scrub: &c.scrub, out: req.OnText}
	if req.Stream && req.OnText != nil {
		c.heard = func(piece string, _ int) { text.add(piece) }
	}
	started := e.config.Now()
	r, err := c.ask(ctx, request, chatSchema(req))
	if err == nil && r.content == "" && r.refusal != "" {
		err = r.refused()
	}
	if err != nil {
		failure := c.explainChat(ctx, err)
		failure.Usage = c.chatUsage(e.config.Now().Sub(started))
		return chat.Reply{}, failure
	}
	text.end()
	return c.chatReply(r), nil
}

// explainChat is explain, and tells apart what an agent treats in its own ways.
func (c *call) explainChat(ctx context.Context, err error) *activities.Failure {
	failure := c.explain(ctx, err)
	switch {
	case ctx.Err() != nil:
	case exceedsContext(err):
		failure.Code, failure.Retryable, failure.RetryAfter = chat.CodeContextExceeded, activities.RetryPointless, 0
	case overloaded(err):
		failure.Err = chat.ErrOverloaded
	}
	return failure
}

// chatUsage is usage, with estimates where the provider counts nothing.
func (c *call) chatUsage(took time.Duration) map[string]any {
	u := c.usage(took)
	if u == nil || c.reply.usage.counted() {
		return u
	}
	cost := c.cost(c.reply)
	u["prompt_tokens"], u["completion_tokens"], u["total_tokens"] = cost.Prompt, cost.Completion, cost.Prompt+cost.Completion
	u["estimated"] = true
	return u
}

// chatReply is an answer without the key, if the model says it.
func (c *call) chatReply(r *reply) chat.Reply {
	calls := r.calls
	for i, call := range calls {
		calls[i] = chat.Call{ID: c.scrub.answer(call.ID), Name: c.scrub.answer(call.Name), Arguments: c.scrub.json(call.Arguments)}
	}
	identify(calls)
	return chat.Reply{
		Model: c.answerer(r), Text: c.scrub.answer(r.content), Reasoning: c.scrub.answer(r.reasoning), Calls: calls,
		Finish: finishOf(r.finish), Usage: c.cost(r),
	}
}

// finishOf reads why an answer ended. Providers have names of their own; one that is not known says no more than that it ended.
func finishOf(reason string) chat.Finish {
	switch strings.ToLower(reason) {
	case "length", "max_tokens", "model_length", "model_context_window_exceeded":
		return chat.FinishLength
	case "content_filter", "safety", "refusal":
		return chat.FinishFilter
	}
	return chat.FinishStop
}

var _ chat.Model = (*Executor)(nil)
