package llmcall

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/chat/openaichat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// DefaultMaxPromptBytes is the default of Config.MaxPromptBytes.
const DefaultMaxPromptBytes = 2 << 20

// Secret holds a key that cannot be printed by accident.
type Secret = chat.Secret

// NewSecret returns a Secret that holds a value, without the white space around it.
func NewSecret(value string) Secret { return chat.NewSecret(value) }

// Config configures an Executor. It needs Model, APIKey or NoAuth; everything else has a default.
type Config struct {
	// Model answers the questions. nil means the server of chat completions that the fields from BaseURL to Client describe; with a Model
	// they must be zero.
	Model chat.Model

	// BaseURL, APIKey, KeyFrom, NoAuth, RequestTimeout, IdleTimeout, MaxAnswerBytes and Client are the fields of openaichat.Config.
	BaseURL        string
	APIKey         func(ctx context.Context) (Secret, error)
	KeyFrom        string
	NoAuth         bool
	RequestTimeout time.Duration
	IdleTimeout    time.Duration
	MaxAnswerBytes int64
	Client         *http.Client

	// Stream requests streamed answers, with a heartbeat while they arrive. A node's config.stream overrides it.
	Stream bool
	// NoRepair disables the additional attempt that sends the model its own answer, if it violated the node's output_schema, and the errors
	// in it.
	NoRepair bool
	// MaxPromptBytes limits the prompts of a request; a large one is usually the state, which replaces a missing prompt. 0 means
	// DefaultMaxPromptBytes.
	MaxPromptBytes int
	// HeartbeatInterval is the shortest time between two heartbeats of a streamed answer; 0 means a second.
	HeartbeatInterval time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Executor performs llm_call nodes. It is safe for concurrent use.
type Executor struct {
	model  chat.Model
	config Config
}

// New checks the configuration; it sends nothing and asks for no key. The error is a *problem.Error with code LLM_CONFIG_INVALID.
func New(c Config) (*Executor, error) {
	if c.MaxPromptBytes < 0 || c.HeartbeatInterval < 0 {
		return nil, problem.New(problem.LLMConfigInvalid, "the limits of the model configuration must not be negative")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	server := openaichat.Config{
		BaseURL: c.BaseURL, APIKey: c.APIKey, KeyFrom: c.KeyFrom, NoAuth: c.NoAuth, RequestTimeout: c.RequestTimeout, IdleTimeout: c.IdleTimeout,
		MaxAnswerBytes: c.MaxAnswerBytes, Client: c.Client, Now: c.Now,
	}
	e := &Executor{model: c.Model, config: c}
	switch {
	case c.Model == nil:
		model, err := openaichat.New(server)
		if err != nil {
			return nil, err
		}
		e.model = model
	case c.BaseURL != "" || c.APIKey != nil || c.KeyFrom != "" || c.NoAuth || c.RequestTimeout != 0 || c.IdleTimeout != 0 || c.MaxAnswerBytes != 0 || c.Client != nil:
		return nil, problem.New(problem.LLMConfigInvalid, "the model configuration cannot have both a Model and the settings of a server").
			WithHint("set only Model, or leave it out")
	}
	e.config.MaxPromptBytes = cmp.Or(c.MaxPromptBytes, DefaultMaxPromptBytes)
	e.config.HeartbeatInterval = cmp.Or(c.HeartbeatInterval, time.Second)
	return e, nil
}
