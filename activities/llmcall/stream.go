package llmcall

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"
)

// receive puts a streamed answer together, with heartbeats on the way. A stream that ends without saying why the model
// stopped has been cut off. Servers that cannot stream answer in one piece.
func (c *call) receive(ctx context.Context, client *openai.Client, request openai.ChatCompletionRequest, x *exchange) (*reply, error) {
	stream, err := client.CreateChatCompletionStream(ctx, request)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	if x.body != nil {
		return whole(x.body)
	}
	var (
		content, refusal strings.Builder
		calls            bool
		beat             time.Time
		r                = &reply{}
	)
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, streamError(err)
		}
		if piece.Model != "" {
			r.model = piece.Model
		}
		if piece.Usage != nil {
			r.usage = *piece.Usage
		}
		for _, choice := range piece.Choices {
			if choice.Index != 0 {
				continue
			}
			content.WriteString(choice.Delta.Content)
			refusal.WriteString(choice.Delta.Refusal)
			calls = calls || len(choice.Delta.ToolCalls) > 0 || choice.Delta.FunctionCall != nil
			if choice.FinishReason != "" {
				r.finish = string(choice.FinishReason)
			}
		}
		if now := c.config.Now(); c.req.Heartbeat != nil && now.Sub(beat) >= c.config.HeartbeatInterval {
			beat = now
			c.req.Heartbeat(map[string]any{"received_bytes": content.Len()})
		}
	}
	if r.finish == "" {
		return nil, &answerError{text: "the stream ended before the answer did", retry: true}
	}
	r.content = content.String()
	if r.content == "" {
		return r, emptyAnswer(refusal.String(), calls, true, r.finish)
	}
	return r, nil
}

func streamError(err error) error {
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return &answerError{text: "a piece of the stream is not JSON", retry: true}
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &answerError{text: "a piece of the stream is not a chat completion chunk", retry: true}
	}
	return statusOf(err)
}
