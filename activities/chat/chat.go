// Package chat is the port for models: agents and llm_call nodes ask every question through Model, whatever the provider. Package
// openaichat implements it for servers of chat completions; another provider is one more package that does.
package chat

import "context"

// Model answers conversations. It is safe for concurrent use.
type Model interface {
	// Chat asks for the next message of the assistant. It repeats no request that failed: retries are the caller's.
	//
	// The error is an *activities.Failure with one of the codes of llm_call (LLM_*, TIMEOUT, ACTIVITY_CANCELLED) and the waiting time that
	// the provider asks for. Its usage, if tokens were billed, is read by UsageIn. Its data may have a class (ClassIn), which decides between
	// another attempt and the next model. CodeContextExceeded: the conversation is too large for the model. A failure with the cause
	// ErrOverloaded: the provider is busy.
	Chat(ctx context.Context, req Request) (Reply, error)
}

// Describer is a Model with one address. llm_call records the description with each request, and limits apply to the address.
type Describer interface {
	// Address is the provider's address, without secrets.
	Address() string
	// Describe returns the first request that Chat would send, JSON-like and without the key: "endpoint", the body's fields, and the
	// name of the format as "response_format". It returns nil for a request that Chat rejects.
	Describe(req Request) map[string]any
}

// Codes of failures. Package problem declares them too; this package does not import it.
const (
	// CodeContextExceeded: the conversation is too large for the model (problem.LLMContextExceeded).
	CodeContextExceeded = "LLM_CONTEXT_EXCEEDED"
	// CodeQuotaExceeded: the provider's account has no credit left (problem.LLMQuotaExceeded).
	CodeQuotaExceeded = "LLM_QUOTA_EXCEEDED"
	// CodeCredentialsRefused: the provider rejects the key (problem.LLMCredentialsRefused).
	CodeCredentialsRefused = "LLM_CREDENTIALS_REFUSED"
)

// Role is the author of a message.
type Role string

// The roles.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	// Result is the result of a tool call.
	Result Role = "tool"
)

// Message is one message of a conversation.
type Message struct {
	Role Role   `json:"role"`
	Text string `json:"text,omitempty"`
	// Calls are the calls that a message of the assistant asks for.
	Calls []Call `json:"calls,omitempty"`
	// CallID is the id of the call that a Result answers.
	CallID string `json:"call_id,omitempty"`
}

// Call is a call of a tool that a model asks for.
type Call struct {
	// ID is the provider's, unique within a reply.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments is the model's text: usually a JSON object, but it may be anything.
	Arguments string `json:"arguments"`
}

// Tool is a tool that a model may call.
type Tool struct {
	// Name has 1 to 64 of the characters A-Z, a-z, 0-9, "_" and "-".
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Parameters is the JSON Schema of the arguments, an object.
	Parameters map[string]any `json:"parameters"`
}

// Request is a request for the next message of a conversation.
type Request struct {
	// Model is the provider's name of the model.
	Model    string    `json:"model"`
	Messages []Message `json:"messages"`
	Tools    []Tool    `json:"tools,omitempty"`
	// MaxTokens limits the answer; 0 leaves the limit to the provider.
	MaxTokens int `json:"max_tokens"`
	// Temperature is nil for the provider's default.
	Temperature *float64 `json:"temperature,omitempty"`
	// TopP, Seed and Stop are left to the provider if they are nil.
	TopP *float64 `json:"top_p,omitempty"`
	Seed *int     `json:"seed,omitempty"`
	Stop []string `json:"stop,omitempty"`
	// Schema is the JSON Schema that the answer must satisfy, nil for free text. The caller checks the answer.
	Schema map[string]any `json:"schema,omitempty"`
	// SchemaName names the schema for providers that need a name; "" means "answer".
	SchemaName string `json:"schema_name,omitempty"`

	// Key is the idempotency key of the request: a repetition after a crash has the same one.
	Key string `json:"-"`
	// Stream asks for a streamed answer. OnText, unless nil, is called with each piece of its text.
	Stream bool              `json:"-"`
	OnText func(text string) `json:"-"`
	// OnProgress, unless nil, is called for each piece of a streamed answer, with the bytes of content received so far, reasoning between
	// tags included.
	OnProgress func(received int) `json:"-"`
	// Meter, unless nil, counts the requests of several calls of Chat. A Model may ignore it.
	Meter *Meter `json:"-"`
}

// Meter counts the requests of one attempt, which may ask several models.
type Meter struct {
	// Requests is the number of requests sent to providers. The n-th request of an attempt needs an idempotency key of its own: Key for
	// the first, Key, ":" and n for the others.
	Requests int
	// Usage is the usage of the newest answer, usable or not, with the fields that llm_call records: model, finish_reason,
	// response_format, and the provider's counts of tokens. It is nil without an answer.
	Usage map[string]any
}

// Finish is the reason for the end of an answer.
type Finish string

// The reasons.
const (
	// FinishStop: the model has finished, or calls tools.
	FinishStop Finish = "stop"
	// FinishLength: MaxTokens was reached.
	FinishLength Finish = "length"
	// FinishFilter: the provider withheld the rest.
	FinishFilter Finish = "content_filter"
)

// Reply is the next message of the assistant.
type Reply struct {
	// Model is the provider's name of the model that answered.
	Model string
	Text  string
	// NoText is set if the answer has neither calls nor a text, not even an empty one.
	NoText bool
	// Reasoning is the model's reasoning, if the provider returns it. It is not sent back.
	Reasoning string
	Calls     []Call
	Finish    Finish
	Usage     Usage
}

// Usage is the cost of a request, in tokens. Prompt includes Cached.
type Usage struct {
	Prompt, Cached, Completion int
	// Estimated is set if the provider does not count tokens.
	Estimated bool
}
