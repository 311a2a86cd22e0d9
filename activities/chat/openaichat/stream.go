package openaichat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// receive assembles a streamed answer. A stream that ends without a finish_reason was cut off: the part that arrived is returned with the
// error.
func receive(events io.Reader, heard func(piece string, received int)) (*reply, error) {
	b := builder{heard: heard}
	err := b.receive(bufio.NewReader(events))
	if err != nil && !b.begun() {
		return nil, err
	}
	r := b.answer()
	r.isText = true // even if no piece has a text
	return r, err
}

func (b *builder) receive(events *bufio.Reader) error {
	var event []byte // the lines of an incomplete event
	done, first := false, true
	for {
		line, readErr := events.ReadBytes('\n')
		if first {
			line, first = bytes.TrimPrefix(line, []byte("\ufeff")), false
		}
		data := eventData(line)
		if string(data) == "[DONE]" {
			done = true
			break
		}
		ends := len(bytes.TrimSpace(line)) == 0 || readErr == io.EOF
		if len(data) > 0 && (readErr == nil || readErr == io.EOF) {
			event = append(append(event, data...), '\n')
		}
		if len(event) > 0 && (ends || json.Valid(event)) {
			var piece completion
			if err := json.Unmarshal(event, &piece); err != nil {
				return streamError(err)
			}
			if err := b.add(&piece); err != nil {
				return err
			}
			event = event[:0]
		}
		if readErr == io.EOF {
			break
		}
		if readErr != nil {
			return readErr
		}
	}
	if b.reply.finish == "" && !(done && b.complete()) {
		return &answerError{text: "the stream ended before the answer did", retry: true}
	}
	return nil
}

// complete reports whether the pieces are a whole answer: a text, or calls with complete arguments. Some servers send [DONE] without a
// finish_reason.
func (b *builder) complete() bool {
	for _, c := range b.calls.calls {
		if text := strings.TrimSpace(joinHalves(c.arguments.String())); text != "" && !json.Valid([]byte(text)) {
			return false
		}
	}
	return len(b.calls.calls) > 0 || b.thinking == speaks && strings.TrimSpace(b.content.String()[b.said:]) != ""
}

// eventData returns the data of a line of server-sent events, nil for a line without data. Servers that fail or cannot stream may send a
// document on a line without "data:".
func eventData(line []byte) []byte {
	line = bytes.TrimSpace(line)
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		return bytes.TrimSpace(data)
	}
	if bytes.HasPrefix(line, []byte("{")) {
		return line
	}
	return nil
}

func streamError(err error) error {
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return &answerError{text: "a piece of the stream is not JSON", retry: true}
	}
	return &answerError{text: "a piece of the stream is not a chat completion chunk", retry: true}
}
