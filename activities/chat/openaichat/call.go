package openaichat

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/sashabaranov/go-openai"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// call asks a model for one answer: with one request, or with more if the server does not support a part of the first.
type call struct {
	*Model
	model  string
	stream bool
	// idempotency is the key of the first request.
	idempotency string
	key         chat.Secret
	// keyRead is set once a rejected key has been read again.
	keyRead bool
	scrub   scrubber
	meter   *chat.Meter
	// sent is the size of the newest request, in bytes.
	sent int64
	// heard is called with each piece of a streamed answer: its text, which may be empty, and the bytes of content so far. It may be nil.
	heard func(piece string, received int)
	// reply is the model's newest answer, usable or not; nil without an answer.
	reply *reply
}

// ask sends a request, in the best format that the provider supports.
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

// send makes one request. It makes another if the server does not support stream_options, which streams need for their usage, or the old
// name of the answer's limit.
func (c *call) send(ctx context.Context, request openai.ChatCompletionRequest) (*reply, error) {
	//lint:ignore SA1019 many servers support only the old name of the limit
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

// sendOnce makes one request. A rejected key is read again: if it has been replaced, the request is sent once more.
func (c *call) sendOnce(ctx context.Context, request openai.ChatCompletionRequest, plain bool) (*reply, error) {
	r, err := c.sendWith(ctx, request, plain)
	status, ok := errors.AsType[*statusError](err)
	if !ok || c.config.NoAuth || status.status != http.StatusUnauthorized && status.status != http.StatusForbidden || c.keyRead {
		return r, err
	}
	c.keyRead = true
	if key, keyErr := c.Model.key(ctx); keyErr == nil && key != c.key {
		c.scrub, c.key = newScrubber(c.key, key), key
		return c.sendWith(ctx, request, plain)
	}
	return r, err
}

// sendWith makes one request; a plain one has no stream_options. It returns an answer even with an error, if one began to arrive. The error
// is a *statusError, an *answerError, or the transport's.
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

// exchange sends a request with the library, and reads the answer itself: servers answer in more forms than the library accepts. A server that
// cannot stream answers in one piece.
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

// idempotencyKey counts a request and returns its key. Requests with different bodies need different keys.
func (c *call) idempotencyKey() string {
	c.meter.Requests++
	if c.meter.Requests == 1 || c.idempotency == "" {
		return c.idempotency
	}
	return fmt.Sprintf("%s:%d", c.idempotency, c.meter.Requests)
}

// limited sets the limit of an answer, under the name that the model supports. If the client knows that the model rejects the settings,
// the error is a Failure with code LLM_CONFIG_INVALID.
func limited(r openai.ChatCompletionRequest, maxTokens int) (openai.ChatCompletionRequest, error) {
	validator := openai.NewReasoningValidator()
	common := r
	//lint:ignore SA1019 many servers support only the old name of the limit
	common.MaxTokens = maxTokens
	if validator.Validate(common) == nil {
		return common, nil
	}
	// Reasoning models support its new name. If the name was not the cause, the error occurs again.
	r.MaxCompletionTokens = maxTokens
	if err := validator.Validate(r); err != nil {
		return r, activities.Fail(problem.LLMConfigInvalid, "model %q does not take these settings: %v", r.Model, err)
	}
	return r, nil
}
