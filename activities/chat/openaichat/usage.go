package openaichat

import (
	"encoding/json"

	"github.com/workflows-engine/workflows-engine/activities/chat"
)

// tokens holds the counts of a provider; 0 means not counted.
type tokens struct {
	prompt, completion, total, cached, reasoning int
}

// read reads a usage, or a later one of the same answer. A usage in an unknown form counts nothing.
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

// answered returns the usage of an answer. It has no counts if the provider counts no tokens.
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

// answerer returns the name of the model that answered, else the requested one.
func (c *call) answerer(r *reply) string {
	model := r.model
	if model == "" {
		model = c.model
	}
	return excerpt(c.scrub.answer(model))
}

// cost returns the usage of an answer for an agent, whose budgets need one. If the provider counts nothing, a token is taken as four bytes.
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
