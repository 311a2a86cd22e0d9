package chat

import (
	"regexp"
	"slices"
	"strings"
)

// Refusal is an error that a provider reports instead of an answer. Providers share the statuses and the words by which Class tells
// refusals apart, so every implementation of Model can use it.
type Refusal struct {
	// Status is the HTTP status, 0 for an error within a stream.
	Status int
	// Text is the provider's text. Its case is ignored.
	Text string
	// Pause is set if the response says when to ask again (Retry-After).
	Pause bool
}

// HTTP statuses that Class distinguishes. The package is pure and does not import net/http.
const (
	statusBadRequest    = 400
	statusUnauthorized  = 401
	statusPayment       = 402
	statusForbidden     = 403
	statusNotFound      = 404
	statusTimeout       = 408
	statusConflict      = 409
	statusTooLarge      = 413
	statusUnprocessable = 422
	statusTooEarly      = 425
	statusInternalError = 500
	statusUnavailable   = 503
	statusOverloaded    = 529 // some providers use it instead of 503
)

// noCredit holds providers' words for an account without credit. Some send them with the status of a rate limit, others with 400.
var noCredit = []string{
	"insufficient_quota", "insufficient quota", "insufficient credit", "out of credit", "credit balance", "credits are depleted", "credit limit",
	"no credits", "insufficient balance", "insufficient_balance", "insufficient funds", "payment required", "billing_", "quota_exceeded",
}

// billing matches a word of such texts, but not in addresses, which texts about rate limits have.
var billing = regexp.MustCompile(`(^|[^/\w.])billing`)

// limitedFor holds words of texts about rate limits, which may mention plan and billing too.
var limitedFor = []string{"per minute", "per_minute", "perminute", "retrydelay", "rate limit", "rate_limit"}

// noModel holds providers' words for an unknown model.
var noModel = []string{
	"model_not_found", "model not found", "no such model", "unknown model", "invalid model name", "not a valid model", "model does not exist",
}

// filtered holds providers' words for content that they filter out.
var filtered = []string{"content_filter", "content_policy_violation", "content management policy", "responsibleaipolicyviolation"}

// tooLong holds providers' words for a conversation that is too large for the model. The words are needed because most providers send the
// status of any invalid request, and few send a code.
var tooLong = []string{
	"context_length_exceeded", "context length", "context window", "context size", "context limit", "exceed_context_size",
	"maximum prompt length", "prompt is too long", "prompt too long", "input is too long", "input length exceeds",
	"input token count", "prompt token count", "model_max_prompt_tokens_exceeded", "model token limit", "exceeds token limit", "token limit exceeded",
	"reduce the length of the messages", "request_too_large", "too many tokens:",
}

// Class returns the class of the refusal, "" for an error within a stream whose text names no cause.
func (r Refusal) Class() Class {
	status := r.Status
	invalid := status == 0 || status == statusBadRequest || status == statusUnprocessable
	switch {
	case status == statusTooLarge, (invalid || status == statusInternalError) && r.has(tooLong):
		return ClassContext
	case r.withoutCredit():
		return ClassQuota
	case status == statusUnauthorized, status == statusForbidden:
		return ClassCredentials
	case invalid && r.has(filtered):
		return ClassRefused
	case status == statusNotFound, invalid && r.has(noModel):
		return ClassUnknown
	case r.Overloaded(), status == StatusRateLimit, status == statusUnavailable:
		return ClassBusy
	case status == statusTimeout, status == statusConflict, status == statusTooEarly, status >= 500:
		return ClassDown
	case status != 0:
		return ClassRequest
	}
	return ""
}

// Overloaded reports whether the provider is overloaded for all clients.
func (r Refusal) Overloaded() bool {
	return r.Status == statusOverloaded || (r.Status == 0 || r.Status >= 500) && r.has([]string{"overloaded"})
}

// withoutCredit reports whether the account has no credit.
func (r Refusal) withoutCredit() bool {
	switch {
	case r.Status == statusPayment:
		return true
	case r.Status != 0 && (r.Status < 400 || r.Status >= 500):
		return false
	case r.has(noCredit):
		return true
	case r.Status == StatusRateLimit && (r.Pause || r.has(limitedFor)):
		return false
	}
	// Errors about an invalid request may quote it, and it may mention billing.
	return r.Status != statusBadRequest && r.Status != statusUnprocessable && billing.MatchString(strings.ToLower(r.Text))
}

func (r Refusal) has(words []string) bool {
	text := strings.ToLower(r.Text)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}
