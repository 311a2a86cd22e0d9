package openaichat

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// tooLong holds providers' words for a conversation that is too large for the model. The words are needed because most providers send the
// status of any invalid request, and few send a code.
var tooLong = []string{
	"context_length_exceeded", "context length", "context window", "context size", "context limit", "exceed_context_size",
	"maximum prompt length", "prompt is too long", "prompt too long", "input is too long", "input length exceeds",
	"input token count", "prompt token count", "model_max_prompt_tokens_exceeded", "model token limit", "exceeds token limit", "token limit exceeded",
	"reduce the length of the messages", "request_too_large", "too many tokens:",
}

// exceedsContext reports whether an error means that the conversation is too large for the model: by status 413 or by its words, also within a
// stream.
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

// overloaded reports whether an error means that the provider is overloaded for all clients.
func overloaded(err error) bool {
	status, text := refusalOf(err)
	return status == statusOverloaded || (status == 0 || status >= 500) && strings.Contains(text, "overloaded")
}

// refusalOf returns the status and the text, in lower case, of an error that the provider reports. The status is 0 within a stream; the text
// is "" for other errors.
func refusalOf(err error) (status int, text string) {
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.status, strings.ToLower(e.body)
	}
	if e, ok := errors.AsType[*answerError](err); ok && e.provider {
		return 0, strings.ToLower(e.quote)
	}
	return 0, ""
}
