package delegate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// cardPaths are where agents keep their cards, the current place first.
var cardPaths = []string{"/.well-known/agent-card.json", "/.well-known/agent.json"}

// agentCard has the used fields of an agent's card.
type agentCard struct{ members map[string]any }

// card fetches the card of the agent at an address; nil without a card.
func (c *A2AConfig) card(ctx context.Context, base, key string) (*agentCard, error) {
	for _, path := range cardPaths {
		answer, err := c.exchange(ctx, exchange{method: http.MethodGet, url: base + path, key: key})
		if isMissing(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		value, err := jsonvalue.Decode(answer)
		members, ok := value.(map[string]any)
		if err != nil || !ok {
			return nil, permanent(problem.A2AProviderError, "the agent's card is not a JSON object: %s", problem.ClipRunes(string(answer), 200))
		}
		return &agentCard{members}, nil
	}
	return nil, nil
}

// isMissing reports whether there is nothing at an address.
func isMissing(err error) bool {
	var answered *statusError
	return errors.As(err, &answered) &&
		(answered.status == http.StatusNotFound || answered.status == http.StatusGone || answered.status == http.StatusMethodNotAllowed)
}

// statusError is the cause of a failure for an answer that is not 2xx.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

// jsonRPC returns the address of the JSON-RPC interface that the card names.
func (c *agentCard) jsonRPC(base string) (string, error) {
	const transport = "JSONRPC"
	address := ""
	if preferred, _ := c.members["preferredTransport"].(string); preferred == "" || strings.EqualFold(preferred, transport) {
		address, _ = c.members["url"].(string)
	}
	more, _ := c.members["additionalInterfaces"].([]any)
	for _, entry := range more {
		named, _ := member[string](entry, "transport")
		if at, _ := member[string](entry, "url"); address == "" && strings.EqualFold(named, transport) {
			address = at
		}
	}
	if address == "" {
		return "", permanent(problem.A2AProviderError, "the agent's card must have a JSON-RPC address: no other transport is supported")
	}
	from, _ := url.Parse(base)
	to, err := from.Parse(address)
	if err != nil {
		return "", permanent(problem.A2AProviderError, "the address in the agent's card cannot be read")
	}
	if to.Scheme != from.Scheme || !strings.EqualFold(to.Hostname(), from.Hostname()) || portOf(to) != portOf(from) {
		return "", permanent(problem.A2AConfigInvalid,
			"the agent's card at %s names the address %s://%s; the key is sent to no other host. Set baseUrl to that address if it is right", from.Host, to.Scheme, to.Host)
	}
	// A slash at its end belongs to it: servers redirect requests without it, and redirects are not followed.
	return to.String(), nil
}

func portOf(u *url.URL) string {
	switch port := u.Port(); {
	case port != "":
		return port
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// otherTransport adds to the error of an address with no agent of this transport which setting to change. Another attempt may
// succeed, since the agent may be starting.
func otherTransport(err error, other string) error {
	failure, ok := errors.AsType[*activities.Failure](err)
	if !ok || !isMissing(err) && !errors.Is(err, errNotRPC) {
		return err
	}
	failure.Err = fmt.Errorf("%w; if the agent has the other form, set its transport to %q", failure.Err, other)
	if isMissing(err) {
		failure.Retryable = activities.RetrySensible
	}
	return failure
}

// permanent is a failure that another attempt would meet again.
func permanent(code problem.Code, format string, args ...any) *activities.Failure {
	failure := activities.Fail(code, format, args...)
	failure.Retryable = activities.RetryPointless
	return failure
}
