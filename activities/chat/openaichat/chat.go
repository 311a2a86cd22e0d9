package openaichat

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Chat implements chat.Model. A question takes one HTTP request, or more if the server does not support a part of the first. The usage of a
// failure has the fields that chat.UsageIn reads, also for an answer that broke off.
func (m *Model) Chat(ctx context.Context, req chat.Request) (chat.Reply, error) {
	request, err := newRequest(req)
	if err != nil {
		return chat.Reply{}, err
	}
	c := &call{Model: m, model: req.Model, stream: req.Stream, idempotency: req.Key, meter: req.Meter}
	if c.meter == nil {
		c.meter = &chat.Meter{}
	}
	if c.key, err = m.key(ctx); err != nil {
		return chat.Reply{}, err
	}
	c.scrub = newScrubber(c.key)
	text := scrubbedPieces{scrub: &c.scrub, out: req.OnText}
	if req.Stream {
		c.heard = func(piece string, received int) {
			if req.OnText != nil {
				text.add(piece)
			}
			if req.OnProgress != nil {
				req.OnProgress(received)
			}
		}
	}
	before, started := c.meter.Requests, m.config.Now()
	r, err := c.ask(ctx, request, schemaOf(req))
	if c.reply != nil {
		c.meter.Usage = c.answered(c.reply)
	}
	if err == nil && r.content == "" && r.refusal != "" {
		err = r.refused()
	}
	if err != nil {
		failure := c.explain(ctx, err)
		failure.Usage = c.failedUsage(c.meter.Requests-before, m.config.Now().Sub(started))
		return chat.Reply{}, failure
	}
	text.end()
	return c.chatReply(r), nil
}

// failedUsage returns the usage of a failure, nil without an answer. Tokens that the provider does not count are estimated.
func (c *call) failedUsage(requests int, took time.Duration) map[string]any {
	if c.reply == nil {
		return nil
	}
	u := c.answered(c.reply)
	u["requests"], u["duration_ms"] = requests, took.Milliseconds()
	if !c.reply.usage.counted() {
		cost := c.cost(c.reply)
		u["prompt_tokens"], u["completion_tokens"], u["total_tokens"] = cost.Prompt, cost.Completion, cost.Prompt+cost.Completion
		u["estimated"] = true
	}
	return u
}

// chatReply returns an answer without the key, if the model repeats it.
func (c *call) chatReply(r *reply) chat.Reply {
	calls := r.calls
	for i, call := range calls {
		calls[i] = chat.Call{ID: c.scrub.answer(call.ID), Name: c.scrub.answer(call.Name), Arguments: c.scrub.answer(call.Arguments)}
	}
	identify(calls)
	return chat.Reply{
		Model: c.answerer(r), Text: c.scrub.answer(r.content), NoText: r.content == "" && !r.isText && len(calls) == 0, Reasoning: c.scrub.answer(r.reasoning),
		Calls: calls, Finish: finishOf(r.finish), Usage: c.cost(r),
	}
}

// finishOf reads the provider's reason for the end of an answer. Unknown reasons count as chat.FinishStop.
func finishOf(reason string) chat.Finish {
	switch strings.ToLower(reason) {
	case "length", "max_tokens", "model_length", "model_context_window_exceeded":
		return chat.FinishLength
	case "content_filter", "safety", "refusal":
		return chat.FinishFilter
	}
	return chat.FinishStop
}

// Address implements chat.Describer.
func (m *Model) Address() string { return m.config.BaseURL }

// Describe implements chat.Describer.
func (m *Model) Describe(req chat.Request) map[string]any {
	request, err := newRequest(req)
	if err != nil {
		return nil
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil
	}
	v, err := jsonvalue.Decode(body)
	d, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil
	}
	d["endpoint"] = activities.Endpoint(m.config.BaseURL)
	if req.Stream {
		d["stream"] = true
	}
	if req.Schema != nil {
		d["response_format"] = m.models.of(req.Model).format.String()
	}
	// The client writes a zero as the smallest number above it.
	for name, value := range map[string]*float64{"temperature": req.Temperature, "top_p": req.TopP} {
		if value != nil {
			d[name] = *value
		}
	}
	return d
}

var (
	_ chat.Model     = (*Model)(nil)
	_ chat.Describer = (*Model)(nil)
)
