package openaichat

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities/chat"
)

// reply is a model's answer.
type reply struct {
	content, refusal, reasoning string
	// isText is set if the content is a text, even an empty one.
	isText        bool
	calls         []chat.Call
	model, finish string
	usage         tokens
	format        format
	// formatted is set if the request asked for a format.
	formatted bool
}

// completion is a whole answer, or a piece of a streamed one. It has only the fields that are read: servers use many forms for the others,
// such as times with fractions and numbers as ids.
type completion struct {
	Model   loose           `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index        int             `json:"index"`
	Message      *message        `json:"message"`
	Delta        *message        `json:"delta"`
	FinishReason loose           `json:"finish_reason"`
	Error        json.RawMessage `json:"error"`
}

type message struct {
	Content content `json:"content"`
	Refusal loose   `json:"refusal"`
	// Servers have two names for a model's reasoning.
	Reasoning        loose      `json:"reasoning"`
	ReasoningContent loose      `json:"reasoning_content"`
	ToolCalls        []toolCall `json:"tool_calls"`
	FunctionCall     *function  `json:"function_call"`
}

type toolCall struct {
	Index    json.Number `json:"index"`
	ID       loose       `json:"id"`
	Function function    `json:"function"`
}

type function struct {
	Name      loose     `json:"name"`
	Arguments arguments `json:"arguments"`
}

// loose is a string, or the text of a number; anything else is "".
type loose string

// UnmarshalJSON accepts every value.
func (l *loose) UnmarshalJSON(b []byte) error {
	switch {
	case b[0] == '"':
		return json.Unmarshal(b, (*string)(l))
	case b[0] == '-', b[0] >= '0' && b[0] <= '9':
		*l = loose(b)
	default:
		*l = ""
	}
	return nil
}

// arguments is the arguments of a call: a text, or the JSON value itself, which some servers send.
type arguments string

// UnmarshalJSON accepts every value.
func (a *arguments) UnmarshalJSON(b []byte) error {
	if b[0] != '"' {
		if *a = arguments(b); string(b) == "null" {
			*a = ""
		}
		return nil
	}
	return decodeString(b, (*string)(a))
}

// content is the content of a message: a text, the texts of its parts, or null.
type content struct {
	text, reasoning string
	isText          bool
}

// UnmarshalJSON rejects other values.
func (c *content) UnmarshalJSON(b []byte) error {
	switch {
	case b[0] == '"':
		*c = content{isText: true}
		return decodeString(b, &c.text)
	case string(b) == "null":
		*c = content{}
		return nil
	}
	type textPart struct {
		Type string `json:"type"`
		Text loose  `json:"text"`
	}
	var parts []struct {
		textPart
		Thinking json.RawMessage `json:"thinking"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	var said, thought strings.Builder
	for _, part := range parts {
		if part.Type == "text" {
			said.WriteString(string(part.Text))
			continue
		}
		var thoughts []textPart
		if json.Unmarshal(part.Thinking, &thoughts) == nil {
			for _, t := range thoughts {
				thought.WriteString(string(t.Text))
			}
		}
	}
	c.text, c.reasoning = said.String(), thought.String()
	return nil
}

// builder assembles an answer from its pieces.
type builder struct {
	reply                       reply
	content, refusal, reasoning strings.Builder
	calls                       callList
	// thinking is the state of the reasoning in the content, said the offset of the text after it.
	thinking thinking
	said     int
	// told is the offset of the content that heard has not been called with.
	told  int
	heard func(piece string, received int)
}

// add adds a piece. Of several choices the first counts. The error is an *answerError or a *statusError.
func (b *builder) add(piece *completion) error {
	if given(piece.Error) {
		return providerError(piece.Error)
	}
	if piece.Model != "" {
		b.reply.model = string(piece.Model)
	}
	b.reply.usage.read(piece.Usage)
	for _, c := range piece.Choices {
		if c.Index != 0 {
			continue
		}
		if given(c.Error) {
			return providerError(c.Error)
		}
		if c.Delta != nil {
			b.addMessage(c.Delta, false)
		} else if c.Message != nil {
			b.addMessage(c.Message, true)
		}
		if c.FinishReason != "" {
			b.reply.finish = string(c.FinishReason)
		}
	}
	b.think()
	if b.heard != nil {
		b.heard(b.spoken(), b.content.Len())
	}
	if b.reply.finish == "error" { // without the error itself
		return &answerError{text: `the provider ended its answer with finish_reason "error"`, retry: true}
	}
	return nil
}

// addMessage adds a whole message, or a piece of it.
func (b *builder) addMessage(m *message, whole bool) {
	b.content.WriteString(m.Content.text)
	b.reply.isText = b.reply.isText || m.Content.isText
	b.refusal.WriteString(string(m.Refusal))
	b.reasoning.WriteString(m.Content.reasoning)
	if m.ReasoningContent != "" {
		b.reasoning.WriteString(string(m.ReasoningContent))
	} else {
		b.reasoning.WriteString(string(m.Reasoning))
	}
	for _, d := range m.ToolCalls {
		b.calls.add(d, whole)
	}
	if m.FunctionCall != nil {
		b.calls.add(toolCall{Function: *m.FunctionCall}, whole)
	}
}

// answer returns the assembled answer.
func (b *builder) answer() *reply {
	r := b.reply
	content := joinHalves(b.content.String())
	if thought, said, ok := chat.Thought(content); ok {
		content = said
		b.reasoning.WriteString(thought)
	}
	r.content, r.refusal, r.reasoning, r.calls = content, b.refusal.String(), b.reasoning.String(), b.calls.list()
	return &r
}

// begun reports whether anything of the answer has arrived.
func (b *builder) begun() bool {
	return b.content.Len()+b.refusal.Len()+b.reasoning.Len()+len(b.calls.calls) > 0 || b.reply.usage.counted()
}

// whole reads a whole answer.
func whole(body []byte, heard func(string, int)) (*reply, error) {
	var answer completion
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	if json.Unmarshal(body, &answer) != nil {
		return nil, &answerError{text: "the answer is not a chat completion", quote: string(body), retry: true}
	}
	b := builder{heard: heard}
	if err := b.add(&answer); err != nil {
		return nil, err
	}
	if len(answer.Choices) == 0 {
		return nil, &answerError{text: "the answer has no choices", quote: string(body)}
	}
	return b.answer(), nil
}

func (r *reply) refused() error {
	return &answerError{text: "the model refused", quote: r.refusal, class: chat.ClassRefused}
}

// given reports whether a field is present and not null.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// providerError reads an error in an answer or a stream with status 200. Gateways report the failure of the provider behind them in this way,
// with its status.
func providerError(raw json.RawMessage) error {
	var e struct {
		Code    loose `json:"code"`
		Type    loose `json:"type"`
		Message loose `json:"message"`
	}
	text := string(raw)
	if json.Unmarshal(raw, &e) == nil && e.Message != "" {
		text = string(e.Message)
	}
	status, err := strconv.Atoi(string(e.Code))
	for _, kind := range []loose{e.Type, e.Code} {
		if _, number := strconv.ParseFloat(string(kind), 64); number != nil && kind != "" && !strings.Contains(text, string(kind)) {
			text += " (" + string(kind) + ")"
		}
	}
	if err == nil && status >= 400 && status < 600 {
		return &statusError{status: status, body: text}
	}
	return &answerError{text: "the provider ended its answer with an error", quote: text, retry: true, provider: true}
}
