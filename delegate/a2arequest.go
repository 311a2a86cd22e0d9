package delegate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/httpbody"
)

// maxQuotedBody is how many characters of an error answer go into the failure's text.
const maxQuotedBody = 500

// exchange is one HTTP request.
type exchange struct {
	method, url string
	body        []byte
	// key is the bearer key, idempotency the key of a POST; "" leaves the header out.
	key, idempotency string
}

// exchange performs a request and returns the body of its 2xx answer, with the key taken out of it.
func (c *A2AConfig) exchange(ctx context.Context, x exchange) ([]byte, error) {
	ctx, stop := context.WithTimeout(ctx, c.RequestTimeout)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, x.method, x.url, bytes.NewReader(x.body))
	if err != nil {
		return nil, err
	}
	if x.key != "" {
		request.Header.Set("Authorization", "Bearer "+x.key)
	}
	request.Header.Set("Accept", "application/json")
	if x.method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
		if x.idempotency != "" {
			request.Header.Set("Idempotency-Key", x.idempotency)
		}
	}
	response, err := c.Client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := readAtMost(httpbody.Of(response), c.MaxAnswerBytes)
	if status := response.StatusCode; status < 200 || status > 299 {
		return nil, refused(response, answer, x.key)
	}
	if len(x.key) >= minScrubbedKey {
		for _, form := range spellings(x.key) {
			answer = bytes.ReplaceAll(answer, []byte(form), []byte(redactedKey))
		}
	}
	return answer, err
}

// redactedKey replaces the key where an agent repeated it. Shorter keys than minScrubbedKey, as of local agents, may be words
// that an answer rightly has; they are taken out of error pages only.
const (
	redactedKey    = "[REDACTED]"
	minScrubbedKey = 16
)

// spellings returns a key as it is, and as JSON texts write it.
func spellings(key string) []string {
	forms := []string{key, strings.ReplaceAll(key, "/", `\/`)}
	if encoded, err := json.Marshal(key); err == nil {
		forms = append(forms, string(encoded[1:len(encoded)-1]))
	}
	return forms
}

// refused makes the failure of an answer that is not 2xx. An agent may repeat the request in its error page, so the key
// is removed from quoted texts.
func refused(response *http.Response, body []byte, key string) error {
	quoted := strings.ToValidUTF8(string(body), "\uFFFD")
	if key != "" {
		for _, form := range spellings(key) {
			quoted = strings.ReplaceAll(quoted, form, redactedKey)
		}
	}
	failure := &activities.Failure{Code: string(problem.A2AProviderError)}
	text := fmt.Sprintf("the agent answered %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		text += "; the key is refused"
	case status >= 300 && status <= 399:
		text += "; redirects are not followed, so baseUrl must be the final address"
	}
	if quoted = problem.ClipRunes(strings.TrimSpace(quoted), maxQuotedBody); quoted != "" {
		text += ": " + quoted
	}
	failure.Err = &statusError{response.StatusCode, text}
	failure.Retryable = activities.RetryPointless
	if transientStatus(response.StatusCode) {
		failure.Retryable = activities.RetrySensible
		failure.RetryAfter = activities.RetryAfter(response.Header, time.Now())
	}
	return failure
}

// transient reports whether a poll that failed this way may succeed later: the agent said so, or did not answer.
func transient(err error) bool {
	failure, answered := errors.AsType[*activities.Failure](err)
	return !answered || failure.Retryable == activities.RetrySensible
}

func transientStatus(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

// readAtMost reads everything, and fails if that is more than limit bytes; it then returns the first limit bytes.
func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return data[:limit], activities.Fail(problem.A2AProviderError, "the agent's answer is larger than %d bytes", limit)
	}
	return data, err
}

// unescaped are the characters that url.QueryEscape escapes and clients of the HTTP task form do not, and the space.
var unescaped = strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")

// escapeComponent percent-encodes everything in a path segment but letters, digits and -_.!~*'(), as the form's other
// clients do.
func escapeComponent(s string) string { return unescaped.Replace(url.QueryEscape(s)) }
