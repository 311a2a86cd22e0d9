// Package chat is the port through which agents ask models: conversations with tools, whatever the provider. It holds little but types.
// Package llmcall implements Model for endpoints of chat completions.
package chat

import "context"

// Model answers conversations. It is safe for concurrent use.
type Model interface {
	// Chat asks for the next message of the assistant. A failure is an *activities.Failure with one of the codes of llm_call (LLM_*,
	// TIMEOUT, ACTIVITY_CANCELLED), with the waiting time that the provider asks for, and with the usage if any was billed, which UsageIn reads.
	// CodeContextExceeded says that the conversation is larger than the model takes; the cause ErrOverloaded that the provider is busy. Its
	// data may have a class (ClassIn); agents use it to choose between another try and the next model.
	Chat(ctx context.Context, req Request) (Reply, error)
}

// Codes of failures, which package problem has too, as this package imports nothing.
const (
	// CodeContextExceeded: the conversation is larger than the model takes (problem.LLMContextExceeded).
	CodeContextExceeded = "LLM_CONTEXT_EXCEEDED"
	// CodeQuotaExceeded: the provider's account has no credit left (problem.LLMQuotaExceeded).
	CodeQuotaExceeded = "LLM_QUOTA_EXCEEDED"
	// CodeCredentialsRefused: the provider refuses the key (problem.LLMCredentialsRefused).
	CodeCredentialsRefused = "LLM_CREDENTIALS_REFUSED"
)

// Role says who a message is from.
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
	// Calls are those that a message of the assistant asks for.
	Calls []Call `json:"calls,omitempty"`
	// CallID is the id of the call that a Result answers.
	CallID string `json:"call_id,omitempty"`
}

// Call is a call of a tool that a model asks for.
type Call struct {
	// ID is the provider's, unique within a reply.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments is the text that the model gave, which should be a JSON object and may be anything.
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
	// MaxTokens bounds the answer.
	MaxTokens int `json:"max_tokens"`
	// Temperature is nil for the provider's default.
	Temperature *float64 `json:"temperature,omitempty"`
	// TopP, Seed and Stop are left to the provider where they are nil.
	TopP *float64 `json:"top_p,omitempty"`
	Seed *int     `json:"seed,omitempty"`
	Stop []string `json:"stop,omitempty"`
	// Schema is the JSON Schema that the answer has to satisfy, nil for free text.
	Schema map[string]any `json:"schema,omitempty"`

	// Key identifies the request: a repetition after a crash has the same key. It is not sent to the model.
	Key string `json:"-"`
	// Stream asks for the answer as it is made; OnText, if not nil, is called with each piece of its text.
	Stream bool              `json:"-"`
	OnText func(text string) `json:"-"`
}

// Finish says why an answer ended.
type Finish string

// The ends of an answer.
const (
	// FinishStop: the model was done, or calls tools.
	FinishStop Finish = "stop"
	// FinishLength: MaxTokens was reached.
	FinishLength Finish = "length"
	// FinishFilter: the provider withheld the rest.
	FinishFilter Finish = "content_filter"
)

// Reply is the next message of the assistant.
type Reply struct {
	// Model is the name of the model that answered, as the provider gives it.
	Model string
	Text  string
	// Reasoning is the model's reasoning, if the provider returns it. It is not sent back.
	Reasoning string
	Calls     []Call
	Finish    Finish
	Usage     Usage
}

// Usage is the cost of a request, in tokens. Prompt includes Cached.
type Usage struct {
	Prompt, Cached, Completion int
	// Estimated says that the provider does not count tokens.
	Estimated bool
}
