package llmcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sashabaranov/go-openai"

	"github.com/workflows-engine/workflows-engine/activities"
)

// reply is a model's answer.
type reply struct {
	content       string
	model, finish string
	usage         openai.Usage
	format        format
	// formatted is set where an answer in a format was asked for.
	formatted bool
}

// call is one attempt of a node.
type call struct {
	*Executor
	req      activities.Request
	node     *node
	key      Secret
	scrub    scrubber
	requests int
	// stateMessage is the number of the message that is the whole state, 0 if none is.
	stateMessage int
	// repairs says that the attempt is to put an answer right.
	repairs bool
	// reply is the model's answer, also one that is of no use; nil if there is none.
	reply *reply
}

// ask sends the conversation, in the best format that the provider takes.
func (c *call) ask(ctx context.Context, messages []openai.ChatCompletionMessage) (*reply, error) {
	if c.node.schema == nil {
		return c.note(c.send(ctx, messages, nil))
	}
	f := c.formats.best(c.node.model)
	learn := true
	for {
		r, err := c.note(c.send(ctx, messages, &f))
		refused, schemaOnly := f.refused(err)
		if !refused {
			if r != nil {
				r.format, r.formatted = f, true
			}
			if err != nil {
				return nil, err
			}
			if learn {
				c.formats.learn(c.node.model, f)
			}
			return r, nil
		}
		learn = learn && !schemaOnly
		f++
	}
}

// note keeps an answer for the usage of the attempt.
func (c *call) note(r *reply, err error) (*reply, error) {
	if r != nil {
		c.reply = r
	}
	return r, err
}

// send makes one request, and another where the server does not know stream_options, without which a stream has no usage.
func (c *call) send(ctx context.Context, messages []openai.ChatCompletionMessage, f *format) (*reply, error) {
	plain := c.plainStreams.Load()
	r, err := c.sendOnce(ctx, messages, f, plain)
	if status, ok := errors.AsType[*statusError](err); ok && c.node.stream && !plain && status.speaksOf("stream_options") {
		c.plainStreams.Store(true)
		return c.sendOnce(ctx, messages, f, true)
	}
	return r, err
}

// sendOnce makes one request; a plain one has no stream_options. What the model answered is returned even if it is of no
// use. Its error is a *statusError, an *answerError, a Failure, or what the transport says.
func (c *call) sendOnce(ctx context.Context, messages []openai.ChatCompletionMessage, f *format, plain bool) (*reply, error) {
	request, err := c.node.request(messages)
	if err != nil {
		return nil, err
	}
	if f != nil {
		f.apply(c.node, &request)
	}
	if plain {
		request.StreamOptions = nil
	}
	ctx, stop := context.WithTimeoutCause(ctx, c.config.RequestTimeout, errRequestTimeout)
	defer stop()
	x := &exchange{client: c.config.Client, limit: c.config.MaxAnswerBytes, stream: c.node.stream, idempotencyKey: c.idempotencyKey()}
	settings := openai.DefaultConfig(c.key.Reveal())
	settings.BaseURL, settings.HTTPClient = c.config.BaseURL, x
	// Comments that keep a stream alive count as empty messages; what bounds them is the size of the answer.
	settings.EmptyMessagesLimit = uint(c.config.MaxAnswerBytes)
	client := openai.NewClientWithConfig(settings)
	var r *reply
	if c.node.stream {
		r, err = c.receive(ctx, client, request, x)
	} else {
		r, err = complete(ctx, client, request, x)
	}
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return r, err
}

// idempotencyKey is the attempt's for its first request; the ones after it say something else, and so need others.
func (c *call) idempotencyKey() string {
	c.requests++
	if c.requests == 1 || c.req.IdempotencyKey == "" {
		return c.req.IdempotencyKey
	}
	return fmt.Sprintf("%s:%d", c.req.IdempotencyKey, c.requests)
}

func complete(ctx context.Context, client *openai.Client, request openai.ChatCompletionRequest, x *exchange) (*reply, error) {
	response, err := client.CreateChatCompletion(ctx, request)
	if err != nil {
		if x.body == nil {
			return nil, err
		}
		return whole(x.body)
	}
	return completed(response, x.body)
}

// whole reads a whole answer that the library does not take, or has not seen. It looks at no more than is used: what
// else servers send has many forms, such as times with fractions and numbers as ids.
func whole(body []byte) (*reply, error) {
	var answer struct {
		Model   string                        `json:"model"`
		Choices []openai.ChatCompletionChoice `json:"choices"`
		Usage   json.RawMessage               `json:"usage"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return nil, &answerError{text: "the answer is not a chat completion", quote: string(body), retry: true}
	}
	response := openai.ChatCompletionResponse{Model: answer.Model, Choices: answer.Choices}
	if json.Unmarshal(answer.Usage, &response.Usage) != nil {
		response.Usage = openai.Usage{} // in an unknown form
	}
	return completed(response, body)
}

// completed reads a whole answer.
func completed(response openai.ChatCompletionResponse, body []byte) (*reply, error) {
	if len(response.Choices) == 0 {
		return nil, noChoices(body)
	}
	choice := response.Choices[0]
	message := choice.Message
	r := &reply{content: textOf(message), model: response.Model, finish: string(choice.FinishReason), usage: response.Usage}
	if r.content != "" {
		return r, nil
	}
	return r, emptyAnswer(message.Refusal, len(message.ToolCalls) > 0 || message.FunctionCall != nil, isText(body), r.finish)
}

// textOf returns the content of a message: a text, or the texts of its parts, without what a model thought on the way.
func textOf(m openai.ChatCompletionMessage) string {
	text := m.Content
	for _, part := range m.MultiContent {
		if part.Type == openai.ChatMessagePartTypeText {
			text += part.Text
		}
	}
	return text
}

// emptyAnswer explains an answer without content; text says that there is a content, which is the empty text.
func emptyAnswer(refusal string, calls, text bool, finish string) error {
	switch {
	case refusal != "":
		return &answerError{text: "the model refused", quote: refusal}
	case calls:
		return &answerError{text: "the model called a tool instead of answering, and llm_call has none"}
	case !text:
		return &answerError{text: fmt.Sprintf("the answer has no text as its content (finish_reason %q)", excerpt(finish))}
	}
	return nil
}

// isText reports whether the content of the first choice is a string: the library reads null and missing members as ""
// too.
func isText(body []byte) bool {
	var answer struct {
		Choices []struct {
			Message struct {
				Content any `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	if json.Unmarshal(body, &answer) != nil || len(answer.Choices) == 0 {
		return false
	}
	_, ok := answer.Choices[0].Message.Content.(string)
	return ok
}

// noChoices explains an answer that has none. Gateways report the failure of the provider behind them in this way, with
// the status that it had.
func noChoices(body []byte) error {
	var answer struct {
		Error *struct {
			Code any `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &answer) == nil && answer.Error != nil {
		if code, ok := answer.Error.Code.(float64); ok && code >= 400 && code < 600 {
			return &statusError{status: int(code), body: string(body)}
		}
	}
	return &answerError{text: "the answer has no choices", quote: string(body)}
}

// statusOf returns the status of an error that arrived within a stream.
func statusOf(err error) error {
	if e, ok := errors.AsType[*openai.APIError](err); ok {
		if code, ok := e.Code.(int); ok && code >= 400 && code < 600 {
			return &statusError{status: code, body: e.Message}
		}
		return &answerError{text: "the provider ended its answer with an error", quote: e.Message, retry: true}
	}
	return err
}
