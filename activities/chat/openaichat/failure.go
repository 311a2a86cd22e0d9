package openaichat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// maxExcerpt limits the characters of a provider's text that a failure quotes.
const maxExcerpt = 500

// explain returns the Failure of an error (spec: activities, 5.5 and 16.3). It keeps no cause with a text that has not been scrubbed.
func (c *call) explain(ctx context.Context, err error) *activities.Failure {
	if failure, ok := errors.AsType[*activities.Failure](err); ok {
		return failure
	}
	var failure *activities.Failure
	status, hasStatus := errors.AsType[*statusError](err)
	answer, hasAnswer := errors.AsType[*answerError](err)
	switch {
	case ctx.Err() != nil:
		failure = activities.Interrupted(ctx, problem.Timeout, fmt.Sprintf("the call of model %q", c.model))
	case errors.Is(err, errRequestTimeout), errors.Is(err, context.DeadlineExceeded):
		failure = activities.Fail(problem.Timeout, "model %q did not answer within %v", c.model, c.config.RequestTimeout)
	case errors.Is(err, errIdle):
		failure = activities.Fail(problem.Timeout, "model %q sent nothing of its answer for %v", c.model, c.config.IdleTimeout)
	case hasStatus:
		failure = activities.Fail(problem.LLMProviderError, "%s", c.statusText(status))
		failure.Retryable = activities.RetryPointless
		if class, _ := classify(ctx, err); class.Temporary() {
			failure.Retryable = activities.RetrySensible
			failure.RetryAfter = activities.RetryAfter(status.header, c.config.Now())
		}
	case hasAnswer:
		failure = activities.Fail(problem.LLMProviderError, "model %q: %s", c.model, answer.text)
		if quote := c.scrub.quote(answer.quote); quote != "" {
			failure.Message += ": " + quote
		}
		if answer.retry {
			failure.Retryable = activities.RetrySensible
		}
	default:
		failure = activities.Fail(problem.LLMProviderError, "the model provider cannot be reached: %s", excerpt(c.scrub.text(err.Error())))
		failure.Retryable = activities.RetrySensible
	}
	failure.Message = c.scrub.text(failure.Message)
	switch {
	case ctx.Err() != nil:
	case refusalOf(err).Class() == chat.ClassContext:
		failure.Code, failure.Retryable, failure.RetryAfter = chat.CodeContextExceeded, activities.RetryPointless, 0
	case refusalOf(err).Overloaded():
		failure.Err = chat.ErrOverloaded
	}
	if failure.Code != string(problem.ActivityCancelled) && failure.Code != string(problem.RunnerClosed) {
		class, status := classify(ctx, err)
		failure.Data = class.Data(status)
	}
	return failure
}

// statusText explains a status to the operator and quotes the body.
func (c *call) statusText(e *statusError) string {
	meaning := ""
	switch {
	case e.status == http.StatusUnauthorized, e.status == http.StatusForbidden:
		host := c.config.BaseURL
		if u, err := url.Parse(host); err == nil {
			host = u.Host
		}
		switch {
		case c.config.NoAuth:
			meaning = fmt.Sprintf("; %s requires a key, and the settings have noAuth", host)
		case c.config.KeyFrom != "":
			meaning = fmt.Sprintf("; the key is refused by %s (it comes from %s)", host, c.config.KeyFrom)
		default:
			meaning = "; the key is refused by " + host
		}
	case e.status == http.StatusNotFound:
		meaning = fmt.Sprintf("; there is no model %q at %s, or that is not its address", c.model, c.config.BaseURL)
	case e.status == http.StatusTooManyRequests && refusalOf(e).Class() == chat.ClassQuota:
		meaning = "; the quota is used up"
	case e.status == http.StatusTooManyRequests:
		meaning = "; the rate limit is reached"
	case e.status >= 300 && e.status < 400:
		meaning = "; redirects are not followed, so baseUrl must be the final address"
	}
	text := fmt.Sprintf("the model provider answered with status %d%s", e.status, meaning)
	if body := c.scrub.quote(e.body); body != "" {
		text += ": " + body
	}
	return text
}

// excerpt cuts a provider's text to maxExcerpt characters.
func excerpt(text string) string {
	return problem.ClipRunes(strings.ToValidUTF8(text, "\uFFFD"), maxExcerpt)
}
