package openaichat

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities/chat"
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

// withoutCredit reports whether an error means that the account has no credit. header is nil within a stream.
func withoutCredit(status int, text string, header http.Header) bool {
	switch {
	case status == http.StatusPaymentRequired:
		return true
	case status != 0 && (status < 400 || status >= 500):
		return false
	case containsAny(text, noCredit):
		return true
	case status == http.StatusTooManyRequests && (header.Get("Retry-After")+header.Get("Retry-After-Ms") != "" || containsAny(text, limitedFor)):
		return false
	}
	// Errors about an invalid request may quote it, and it may mention billing.
	return status != http.StatusBadRequest && status != http.StatusUnprocessableEntity && billing.MatchString(text)
}

func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// noModel holds providers' words for an unknown model.
var noModel = []string{
	"model_not_found", "model not found", "no such model", "unknown model", "invalid model name", "not a valid model", "model does not exist",
}

// filtered holds providers' words for content that they filter out.
var filtered = []string{"content_filter", "content_policy_violation", "content management policy", "responsibleaipolicyviolation"}

// classify returns the class of an error, and the HTTP status, 0 without one.
func classify(ctx context.Context, err error) (chat.Class, int) {
	status, text := refusalOf(err)
	has := func(words []string) bool { return containsAny(text, words) }
	var header http.Header
	if e, ok := errors.AsType[*statusError](err); ok {
		header = e.header
	}
	answer, isAnswer := errors.AsType[*answerError](err)
	switch {
	case ctx.Err() != nil, errors.Is(err, errRequestTimeout), errors.Is(err, errIdle), errors.Is(err, context.DeadlineExceeded):
		return chat.ClassSlow, 0
	case exceedsContext(err):
		return chat.ClassContext, status
	case withoutCredit(status, text, header):
		return chat.ClassQuota, status
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return chat.ClassCredentials, status
	case (status == 0 || status == http.StatusBadRequest || status == http.StatusUnprocessableEntity) && has(filtered):
		return chat.ClassRefused, status
	case status == http.StatusNotFound, (status == 0 || status == http.StatusBadRequest || status == http.StatusUnprocessableEntity) && has(noModel):
		return chat.ClassUnknown, status
	case overloaded(err), status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return chat.ClassBusy, status
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly, status >= 500:
		return chat.ClassDown, status
	case status != 0:
		return chat.ClassRequest, status
	case isAnswer && answer.class != "":
		return answer.class, 0
	}
	return chat.ClassDown, 0
}

// classData returns the data of a failure of a class.
func classData(class chat.Class, status int) map[string]any {
	data := map[string]any{chat.DataClass: string(class)}
	if status != 0 {
		data[chat.DataStatus] = status
	}
	return data
}
