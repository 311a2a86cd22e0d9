package openaichat

import (
	"io"

	"github.com/workflows-engine/workflows-engine/activities/chat"
)

// ReadStream reads a streamed answer as Chat does.
func ReadStream(events io.Reader, heard func(piece string, received int)) (chat.Reply, error) {
	r, err := receive(events, heard)
	if err != nil {
		return chat.Reply{}, err
	}
	return (&call{}).chatReply(r), nil
}
