package chat

import "errors"

// ErrOverloaded is the cause of a failure of a provider that has too much to do, whoever asks (status 529, or said in words): its code is
// LLM_PROVIDER_ERROR, and errors.Is tells it from other failures of that code.
var ErrOverloaded = errors.New("the provider is overloaded")

// UsageIn reads the usage of a failure, from the members that llm_call records: prompt_tokens, cached_tokens, completion_tokens, and
// estimated.
func UsageIn(members map[string]any) Usage {
	number := func(name string) int {
		switch n := members[name].(type) {
		case int:
			return n
		case float64: // as it has been recorded
			return int(n)
		}
		return 0
	}
	estimated, _ := members["estimated"].(bool)
	return Usage{Prompt: number("prompt_tokens"), Cached: number("cached_tokens"), Completion: number("completion_tokens"), Estimated: estimated}
}
