package llmcall

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// receive puts a streamed answer together. A stream that ends without saying why the model stopped has been cut off; what came of it
// is returned with the error.
func receive(events io.Reader, heard func(piece string, received int)) (*reply, error) {
	b := builder{heard: heard}
	err := b.receive(bufio.NewReader(events))
	if err != nil && !b.begun() {
		return nil, err
	}
	r := b.answer()
	r.isText = true // no piece of it needs to be
	return r, err
}

func (b *builder) receive(events *bufio.Reader) error {
	for {
		line, readErr := events.ReadBytes('\n')
		if data := eventData(line); string(data) == "[DONE]" {
			break
		} else if len(data) > 0 && (readErr == nil || readErr == io.EOF) {
			var piece completion
			if err := json.Unmarshal(data, &piece); err != nil {
				return streamError(err)
			}
			if err := b.add(&piece); err != nil {
				return err
			}
		}
		if readErr == io.EOF {
			break
		}
		if readErr != nil {
			return readErr
		}
	}
	if b.reply.finish == "" {
		return &answerError{text: "the stream ended before the answer did", retry: true}
	}
	return nil
}

// eventData returns the data of a line of server-sent events, nil if it has none. Servers write a document on one line, and some,
// when they fail or cannot stream, on a line without a field's name.
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
