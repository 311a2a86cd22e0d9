package llmcall

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/sashabaranov/go-openai"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// call asks a model for one answer: with one request, or with more where the server does not know a part of the first.
type call struct {
	*Executor
	model  string
	stream bool
	// idempotency is the key of the first request.
	idempotency string
	key         Secret
	// keyRead says that the key was refused, and read again.
	keyRead  bool
	scrub    scrubber
	requests int
	// sent is the size of the last request.
	sent int64
	// heard is called with each piece of the text of a streamed answer, which is empty where something else arrived, and with the
	// size of the text so far; may be nil.
	heard func(piece string, received int)
	// reply is the model's answer, usable or not; nil without an answer.
	reply *reply
}

// ask sends a request, in the best format that the provider takes.
func (c *call) ask(ctx context.Context, request openai.ChatCompletionRequest, wanted *schema) (*reply, error) {
	if wanted == nil {
		return c.note(c.send(ctx, request))
	}
	f := c.models.of(c.model).format
	learn := true
	for {
		r, err := c.note(c.send(ctx, f.apply(wanted, request)))
		refused, schemaOnly := f.refused(err)
		if !refused {
			if r != nil {
				r.format, r.formatted = f, true
			}
			if err != nil {
				return nil, err
			}
			if learn {
				c.models.learn(c.model, learnt{format: f})
			}
			return r, nil
		}
		learn = learn && !schemaOnly
		f++
	}
}

// note keeps an answer for the usage of the call.
func (c *call) note(r *reply, err error) (*reply, error) {
	if r != nil {
		c.reply = r
	}
	return r, err
}

// send makes one request, and another where the server does not know stream_options, without which a stream has no usage, or the
// limit of an answer by its old name.
func (c *call) send(ctx context.Context, request openai.ChatCompletionRequest) (*reply, error) {
	//lint:ignore SA1019 many servers know the limit by its old name alone
	limit := &request.MaxTokens
	newName := func() { *limit, request.MaxCompletionTokens = 0, *limit }
	if *limit > 0 && c.models.of(c.model).newLimit {
		newName()
	}
	plain := c.plainStreams.Load()
	for {
		r, err := c.sendOnce(ctx, request, plain)
		status, ok := errors.AsType[*statusError](err)
		switch {
		case ok && c.stream && !plain && status.speaksOf("stream_options"):
			plain = true
			c.plainStreams.Store(true)
		case ok && *limit > 0 && status.speaksOf("max_completion_tokens") && status.speaksOf("unsupported", "not supported"):
			newName()
			c.models.learn(c.model, learnt{newLimit: true})
		default:
			return r, err
		}
	}
}

// sendOnce makes one request. Where the key is refused it is read again: a request with a key that has been replaced is sent once more.
func (c *call) sendOnce(ctx context.Context, request openai.ChatCompletionRequest, plain bool) (*reply, error) {
	r, err := c.sendWith(ctx, request, plain)
	status, ok := errors.AsType[*statusError](err)
	if !ok || c.config.NoAuth || status.status != http.StatusUnauthorized && status.status != http.StatusForbidden || c.keyRead {
		return r, err
	}
	c.keyRead = true
	if key, keyErr := c.Executor.key(ctx); keyErr == nil && key != c.key {
		c.scrub, c.key = newScrubber(c.key, key), key
		return c.sendWith(ctx, request, plain)
	}
	return r, err
}

// sendWith makes one request; a plain one has no stream_options. An answer is returned even if it is unusable or
// breaks off. The error is a *statusError, an *answerError, or the transport's.
func (c *call) sendWith(ctx context.Context, request openai.ChatCompletionRequest, plain bool) (*reply, error) {
	if c.stream && !plain {
		request.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	ctx, stop := context.WithTimeoutCause(ctx, c.config.RequestTimeout, errRequestTimeout)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x := &exchange{
		client: c.config.Client, limit: c.config.MaxAnswerBytes, stream: c.stream, idempotencyKey: c.idempotencyKey(), idle: c.config.IdleTimeout, stop: cancel,
	}
	settings := openai.DefaultConfig(c.key.Reveal())
	settings.BaseURL, settings.HTTPClient = c.config.BaseURL, x
	r, err := c.exchange(ctx, openai.NewClientWithConfig(settings), request, x)
	c.sent = x.sent
	if err != nil && ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	return r, err
}

// exchange has the library send a request, and reads the answer here: answers of servers have more forms than the library accepts. A server
// that cannot stream answers in one piece.
func (c *call) exchange(ctx context.Context, client *openai.Client, request openai.ChatCompletionRequest, x *exchange) (*reply, error) {
	var err error
	if c.stream {
		var stream *openai.ChatCompletionStream
		if stream, err = client.CreateChatCompletionStream(ctx, request); err == nil {
			defer stream.Close()
		}
	} else {
		_, err = client.CreateChatCompletion(ctx, request)
	}
	switch {
	case x.body != nil:
		return whole(x.body, c.heard)
	case err != nil:
		return nil, err
	}
	return receive(x.events, c.heard)
}

// idempotencyKey is the call's for its first request; the ones after it say something else, and so need others.
func (c *call) idempotencyKey() string {
	c.requests++
	if c.requests == 1 || c.idempotency == "" {
		return c.idempotency
	}
	return fmt.Sprintf("%s:%d", c.idempotency, c.requests)
}

// limited puts the limit of an answer into a request, under the name that the model knows it by. The error is a Failure with code
// LLM_CONFIG_INVALID, where the client knows that the model does not take the settings.
func limited(r openai.ChatCompletionRequest, maxTokens int, who string) (openai.ChatCompletionRequest, error) {
	validator := openai.NewReasoningValidator()
	common := r
	//lint:ignore SA1019 many servers know the limit by its old name alone
	common.MaxTokens = maxTokens
	if validator.Validate(common) == nil {
		return common, nil
	}
	// Reasoning models know it by its new name. If the name was not the cause, the error occurs again.
	r.MaxCompletionTokens = maxTokens
	if err := validator.Validate(r); err != nil {
		return r, activities.Fail(problem.LLMConfigInvalid, "%s: model %q does not take these settings: %v", who, r.Model, err)
	}
	return r, nil
}
