package llmcall

import "time"

// usage makes the usage of the answers of an attempt, nil if there are none: model and finish_reason of the last, tokens
// of all of them together, the number of HTTP requests and the milliseconds they took. More than one answer means that
// the first broke the output_schema; then each stands in "answers", with its "violation" if it broke the schema. A provider that counts no tokens leaves them out.
func (c *call) usage(took time.Duration) map[string]any {
	replies := c.replies
	if len(replies) == 0 {
		return nil
	}
	last := replies[len(replies)-1]
	total := c.answered(last)
	total["requests"], total["duration_ms"] = c.requests, took.Milliseconds()
	if len(replies) == 1 {
		return total
	}
	var answers []any
	for _, name := range tokenCounts {
		delete(total, name)
	}
	for _, r := range replies {
		one := c.answered(r)
		if r.violation != "" {
			one["violation"] = r.violation
		}
		answers = append(answers, one)
		for _, name := range tokenCounts {
			if n, ok := one[name].(int); ok {
				sum, _ := total[name].(int)
				total[name] = sum + n
			}
		}
	}
	total["answers"] = answers
	return total
}

var tokenCounts = []string{"prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "reasoning_tokens"}

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
