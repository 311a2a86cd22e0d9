package llmcall

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Defaults of Config.
const (
	DefaultBaseURL        = "https://api.openai.com/v1"
	DefaultRequestTimeout = 10 * time.Minute
	DefaultIdleTimeout    = time.Minute
	DefaultMaxAnswerBytes = 10 << 20
	DefaultMaxPromptBytes = 2 << 20
)

// completions is the path that the client appends to the base address.
const completions = "/chat/completions"

// Config configures an Executor. It needs either APIKey or NoAuth; everything else has a default.
type Config struct {
	// BaseURL is the absolute http or https address above /chat/completions; "" means DefaultBaseURL. White space around
	// it and slashes at its end are dropped.
	BaseURL string
	// APIKey returns the bearer key. It is called at every attempt, so that a changed key needs no restart. An error or a
	// blank key fails the attempt with LLM_CREDENTIALS_MISSING.
	APIKey func(ctx context.Context) (Secret, error)
	// KeyFrom says where the key comes from, such as "env:OPENAI_API_KEY", in the failure of a request whose key is refused; it may be
	// empty.
	KeyFrom string
	// NoAuth sends no key, for local servers without authentication. It excludes APIKey.
	NoAuth bool
	// Stream requests streamed answers, with a heartbeat while they arrive. A node's config.stream overrides it.
	Stream bool
	// NoRepair disables the additional attempt that sends the model its own answer, if it broke the node's output_schema, and
	// the errors in it.
	NoRepair bool
	// RequestTimeout bounds each HTTP request, the reading of the answer included, for nodes that have no timeout or a
	// longer one. 0 means DefaultRequestTimeout.
	RequestTimeout time.Duration
	// IdleTimeout is how long a streamed answer that has begun may send nothing, not even a comment. 0 means DefaultIdleTimeout.
	IdleTimeout time.Duration
	// MaxAnswerBytes bounds each answer, as it is after decompression. 0 means DefaultMaxAnswerBytes.
	MaxAnswerBytes int64
	// MaxPromptBytes bounds the messages of a request; the state that stands in for a missing prompt is the usual reason
	// for a large one. 0 means DefaultMaxPromptBytes.
	MaxPromptBytes int
	// HeartbeatInterval is the least time between two heartbeats of a streamed answer; 0 means a second.
	HeartbeatInterval time.Duration
	// Client performs the requests; nil means one of its own. Redirects are never followed, whatever the client says: the
	// key goes to BaseURL alone.
	Client *http.Client
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Executor performs llm_call nodes. It is safe for concurrent use.
type Executor struct {
	config Config
	models modelMemory
	// plainStreams is set once the server has refused stream_options.
	plainStreams atomic.Bool
}

// New checks the configuration; it sends nothing and asks for no key. The error is *problem.Error with code
// LLM_CONFIG_INVALID.
func New(c Config) (*Executor, error) {
	base, err := baseURL(c.BaseURL)
	if err != nil {
		return nil, err
	}
	c.BaseURL = base
	switch {
	case c.APIKey == nil && !c.NoAuth:
		return nil, problem.New(problem.LLMConfigInvalid, "the model configuration names no key").
			WithHint("set apiKeyEnv or apiKeySecretRef, or noAuth for a server that needs no key")
	case c.APIKey != nil && c.NoAuth:
		return nil, problem.New(problem.LLMConfigInvalid, "the model configuration names a key and has noAuth").
			WithHint("leave out noAuth or the key")
	case c.RequestTimeout < 0 || c.IdleTimeout < 0 || c.MaxAnswerBytes < 0 || c.MaxPromptBytes < 0 || c.HeartbeatInterval < 0:
		return nil, problem.New(problem.LLMConfigInvalid, "the model configuration has a negative limit")
	}
	c.RequestTimeout = cmp.Or(c.RequestTimeout, DefaultRequestTimeout)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, DefaultIdleTimeout)
	c.MaxAnswerBytes = cmp.Or(c.MaxAnswerBytes, DefaultMaxAnswerBytes)
	c.MaxPromptBytes = cmp.Or(c.MaxPromptBytes, DefaultMaxPromptBytes)
	c.HeartbeatInterval = cmp.Or(c.HeartbeatInterval, time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Client = withoutRedirects(c.Client)
	return &Executor{config: c}, nil
}

// baseURL checks the address and brings it into the form that a path is appended to.
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
		return "", problem.New(problem.LLMConfigInvalid, "the baseUrl %q ends with %s, which is put behind it", base, completions).
			WithHint("leave the end out: write %s", strings.TrimSuffix(base, completions))
	}
	return base, nil
}

// withoutRedirects copies the client. A redirect would turn the POST into a GET, or carry prompt and key elsewhere.
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
