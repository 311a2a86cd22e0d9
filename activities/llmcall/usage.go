package llmcall

import "time"

// usage makes the usage of an attempt, nil if the model did not answer: that of the answer, the number of HTTP requests
// and the milliseconds they took. A provider that counts no tokens leaves them out.
func (c *call) usage(took time.Duration) map[string]any {
	if c.reply == nil {
		return nil
	}
	u := c.answered(c.reply)
	u["requests"], u["duration_ms"] = c.requests, took.Milliseconds()
	return u
}

// answered is the usage of one answer.
func (c *call) answered(r *reply) map[string]any {
	model := r.model
	if model == "" {
		model = c.node.model
	}
	u := map[string]any{"model": excerpt(c.scrub.answer(model)), "finish_reason": excerpt(c.scrub.answer(r.finish))}
	if r.formatted {
		u["response_format"] = r.format.String()
	}
	if r.usage.PromptTokens+r.usage.CompletionTokens+r.usage.TotalTokens > 0 {
		u["prompt_tokens"], u["completion_tokens"] = r.usage.PromptTokens, r.usage.CompletionTokens
		u["total_tokens"] = max(r.usage.TotalTokens, r.usage.PromptTokens+r.usage.CompletionTokens)
	}
	if d := r.usage.PromptTokensDetails; d != nil && d.CachedTokens > 0 {
		u["cached_tokens"] = d.CachedTokens
	}
	if d := r.usage.CompletionTokensDetails; d != nil && d.ReasoningTokens > 0 {
		u["reasoning_tokens"] = d.ReasoningTokens
	}
	return u
}
