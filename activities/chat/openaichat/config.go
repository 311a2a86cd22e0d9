package openaichat

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Defaults of Config.
const (
	DefaultBaseURL        = "https://api.openai.com/v1"
	DefaultRequestTimeout = 10 * time.Minute
	DefaultIdleTimeout    = time.Minute
	DefaultMaxAnswerBytes = 10 << 20
)

// completions is the path that the client appends to the base address.
const completions = "/chat/completions"

// Config configures a Model. It needs either APIKey or NoAuth; everything else has a default.
type Config struct {
	// BaseURL is the absolute http or https address above /chat/completions; "" means DefaultBaseURL. White space around it and slashes
	// at its end are dropped.
	BaseURL string
	// APIKey returns the bearer key. It is called for every question, so that a changed key needs no restart. An error or a blank key
	// fails the question with LLM_CREDENTIALS_MISSING.
	APIKey func(ctx context.Context) (chat.Secret, error)
	// KeyFrom is the source of the key, such as "env:OPENAI_API_KEY". The failure of a request with a rejected key names it. It may be
	// empty.
	KeyFrom string
	// NoAuth sends no key, for local servers without authentication. It excludes APIKey.
	NoAuth bool
	// RequestTimeout limits each HTTP request, the answer included. 0 means DefaultRequestTimeout.
	RequestTimeout time.Duration
	// IdleTimeout limits the silence within a streamed answer that has begun; a comment counts as sent. 0 means
	// DefaultIdleTimeout.
	IdleTimeout time.Duration
	// MaxAnswerBytes limits each answer, in bytes after decompression. 0 means DefaultMaxAnswerBytes.
	MaxAnswerBytes int64
	// Client performs the requests; nil means a client of the Model's own. Redirects are never followed: the key goes to BaseURL alone.
	Client *http.Client
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Model asks the models of one server. It is safe for concurrent use.
type Model struct {
	config Config
	models modelMemory
	// plainStreams is set once the server has rejected stream_options.
	plainStreams atomic.Bool
}

// New checks the configuration; it sends nothing and asks for no key. The error is a *problem.Error with code LLM_CONFIG_INVALID.
func New(c Config) (*Model, error) {
	base, err := baseURL(c.BaseURL)
	if err != nil {
		return nil, err
	}
	c.BaseURL = base
	switch {
	case c.APIKey == nil && !c.NoAuth:
		return nil, problem.New(problem.LLMConfigInvalid, "the model configuration must have a key or noAuth").
			WithHint("set apiKeyEnv or apiKeySecretRef, or noAuth for a server that needs no key")
	case c.APIKey != nil && c.NoAuth:
		return nil, problem.New(problem.LLMConfigInvalid, "the model configuration cannot have both a key and noAuth").
			WithHint("leave out noAuth or the key")
	case c.RequestTimeout < 0 || c.IdleTimeout < 0 || c.MaxAnswerBytes < 0:
		return nil, problem.New(problem.LLMConfigInvalid, "the limits of the model configuration must not be negative")
	}
	c.RequestTimeout = cmp.Or(c.RequestTimeout, DefaultRequestTimeout)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, DefaultIdleTimeout)
	c.MaxAnswerBytes = cmp.Or(c.MaxAnswerBytes, DefaultMaxAnswerBytes)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Client = withoutRedirects(c.Client)
	return &Model{config: c}, nil
}

// Endpoint is an address of models, and the way to authorize there: the fields of Config of the same names.
type Endpoint struct {
	BaseURL string
	APIKey  func(ctx context.Context) (chat.Secret, error)
	KeyFrom string
	NoAuth  bool
}

// At returns a Model for another endpoint, with the connections, limits and clock of m. The endpoint is checked as by New. The models do
// not share what they learn about their servers.
func (m *Model) At(endpoint Endpoint) (*Model, error) {
	c := m.config
	c.BaseURL, c.APIKey, c.KeyFrom, c.NoAuth = endpoint.BaseURL, endpoint.APIKey, endpoint.KeyFrom, endpoint.NoAuth
	return New(c)
}

// baseURL checks the address, and removes white space around it and slashes at its end.
func baseURL(text string) (string, error) {
	base := strings.TrimRight(strings.TrimSpace(text), "/")
	if base == "" {
		return DefaultBaseURL, nil
	}
	u, err := url.Parse(base)
	if err != nil {
		// The parser's error quotes the address, which may hold a password.
		return "", problem.New(problem.LLMConfigInvalid, "the baseUrl of the models is not an address")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", problem.New(problem.LLMConfigInvalid,
			"the baseUrl %q is not an absolute http or https address without user and query", u.Redacted()).
			WithHint("write the address above /chat/completions, such as %s", DefaultBaseURL)
	}
	if strings.HasSuffix(base, completions) {
		return "", problem.New(problem.LLMConfigInvalid, "the baseUrl %q must not end with %s, which is appended to it", base, completions).
			WithHint("write %s", strings.TrimSuffix(base, completions))
	}
	return base, nil
}

// withoutRedirects copies the client. A redirect would turn the POST into a GET, or carry prompt and key to another host.
func withoutRedirects(client *http.Client) *http.Client {
	var own http.Client
	if client != nil {
		own = *client
	} else if transport, ok := http.DefaultTransport.(*http.Transport); ok {
		transport = transport.Clone()
		transport.MaxIdleConnsPerHost = 64 // parallel branches ask the same host
		own.Transport = transport
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// key asks for the key.
func (m *Model) key(ctx context.Context) (chat.Secret, error) {
	if m.config.NoAuth {
		return chat.Secret{}, nil
	}
	key, err := m.config.APIKey(ctx)
	if err != nil {
		failure := activities.Fail(problem.LLMCredentialsMissing, "the key of the model provider cannot be read")
		failure.Err, failure.Data = err, chat.ClassCredentials.Data(0)
		return chat.Secret{}, failure
	}
	// The HTTP client would reject such a key later, with an error of its own.
	if key = chat.NewSecret(key.Reveal()); !key.Sendable() {
		failure := activities.Fail(problem.LLMCredentialsMissing, "the key of the model provider is blank, or has characters that a header cannot have")
		failure.Data = chat.ClassCredentials.Data(0)
		return chat.Secret{}, failure
	}
	return key, nil
}
