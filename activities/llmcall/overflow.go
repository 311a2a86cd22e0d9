package llmcall

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// tooLong are words of providers for a conversation that is larger than the model takes. There is no other way to know: the status is
// mostly that of any wrong request, and a code of its own is rare.
var tooLong = []string{
	"context_length_exceeded", "context length", "context window", "context size", "context limit", "exceed_context_size",
	"maximum prompt length", "prompt is too long", "prompt too long", "input is too long", "input length exceeds",
	"input token count", "prompt token count", "model_max_prompt_tokens_exceeded", "model token limit", "exceeds token limit", "token limit exceeded",
	"reduce the length of the messages", "request_too_large", "too many tokens:",
}

// exceedsContext reports whether an error says that the conversation is larger than the model takes: by its status 413, or in words,
// also within a stream.
func exceedsContext(err error) bool {
	status, text := refusalOf(err)
	switch status {
	case http.StatusRequestEntityTooLarge:
		return true
	case 0, http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		return slices.ContainsFunc(tooLong, func(words string) bool { return strings.Contains(text, words) })
	}
	return false
}

// statusOverloaded is the status that some providers use instead of 503.
const statusOverloaded = 529

// overloaded reports whether an error says that the provider has too much to do, whoever asks.
func overloaded(err error) bool {
	status, text := refusalOf(err)
	return status == statusOverloaded || (status == 0 || status >= 500) && strings.Contains(text, "overloaded")
}

// refusalOf returns the status and the text, in lower case, of an error that a provider gave: 0 for one within a stream that has
// none, and "" for other errors.
func refusalOf(err error) (status int, text string) {
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.status, strings.ToLower(e.body)
	}
	if e, ok := errors.AsType[*answerError](err); ok && e.provider {
		return 0, strings.ToLower(e.quote)
	}
	return 0, ""
}
