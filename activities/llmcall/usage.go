package llmcall

import (
	"encoding/json"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
)

// tokens are the counts of a provider, 0 where it returns none.
type tokens struct {
	prompt, completion, total, cached, reasoning int
}

// read reads a usage, or a later one of the same answer. One in an unknown form counts nothing.
func (t *tokens) read(raw json.RawMessage) {
	var u struct {
		Prompt        float64 `json:"prompt_tokens"`
		Completion    float64 `json:"completion_tokens"`
		Total         float64 `json:"total_tokens"`
		CacheHit      float64 `json:"prompt_cache_hit_tokens"` // DeepSeek's name
		PromptDetails struct {
			Cached float64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			Reasoning float64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	if !given(raw) || json.Unmarshal(raw, &u) != nil {
		return
	}
	t.prompt, t.completion, t.total = count(u.Prompt), count(u.Completion), count(u.Total)
	t.cached, t.reasoning = count(max(u.PromptDetails.Cached, u.CacheHit)), count(u.CompletionDetails.Reasoning)
}

// maxCount limits a provider's count, so that sums stay exact.
const maxCount = 1 << 40

func count(n float64) int { return int(max(0, min(n, maxCount))) }

// counted reports whether the provider counted anything.
func (t *tokens) counted() bool { return t.prompt+t.completion+t.total > 0 }

// usage makes the usage of a call, nil if the model did not answer: that of the answer, the number of HTTP requests
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
	u := map[string]any{"model": c.answerer(r), "finish_reason": excerpt(c.scrub.answer(r.finish))}
	if r.formatted {
		u["response_format"] = r.format.String()
	}
	if r.usage.counted() {
		u["prompt_tokens"], u["completion_tokens"] = r.usage.prompt, r.usage.completion
		u["total_tokens"] = max(r.usage.total, r.usage.prompt+r.usage.completion)
	}
	if n := r.usage.cached; n > 0 {
		u["cached_tokens"] = n
	}
	if n := r.usage.reasoning; n > 0 {
		u["reasoning_tokens"] = n
	}
	return u
}

// answerer is the name of the model that answered, else of the one that was asked.
func (c *call) answerer(r *reply) string {
	model := r.model
	if model == "" {
		model = c.model
	}
	return excerpt(c.scrub.answer(model))
}

// cost is the usage of an answer for an agent, whose budgets need one: where the provider counts nothing, a quarter of the bytes.
func (c *call) cost(r *reply) chat.Usage {
	if r.usage.counted() {
		u := chat.Usage{Prompt: r.usage.prompt, Completion: max(r.usage.completion, r.usage.total-r.usage.prompt)}
		u.Cached = min(r.usage.cached, u.Prompt)
		return u
	}
	said := len(r.content) + len(r.refusal) + len(r.reasoning)
	for _, call := range r.calls {
		said += len(call.Name) + len(call.Arguments)
	}
	return chat.Usage{Prompt: int(c.sent+3) / 4, Completion: (said + 3) / 4, Estimated: true}
}
