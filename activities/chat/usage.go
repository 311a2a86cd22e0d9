package chat

import "errors"

// ErrOverloaded is the cause of a failure with code LLM_PROVIDER_ERROR if the provider is overloaded for all clients (status 529, or a
// message about it).
var ErrOverloaded = errors.New("the provider is overloaded")

// UsageIn reads the usage of a failure from the fields that llm_call records: prompt_tokens, cached_tokens, completion_tokens and
// estimated.
func UsageIn(fields map[string]any) Usage {
	number := func(name string) int {
		switch n := fields[name].(type) {
		case int:
			return n
		case float64: // read from a record
			return int(n)
		}
		return 0
	}
	estimated, _ := fields["estimated"].(bool)
	return Usage{Prompt: number("prompt_tokens"), Cached: number("cached_tokens"), Completion: number("completion_tokens"), Estimated: estimated}
}
