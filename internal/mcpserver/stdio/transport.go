// Package stdio carries MCP messages over a pair of byte streams, one JSON-RPC message a line.
//
// It replaces the SDK's stdio transport, and survives any input: a line that is not a message is answered with a
// JSON-RPC error if JSON-RPC allows an answer, with the sender's id if that can be found. At the end of input the
// pending requests are finished and answered before the connection closes.
package stdio

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/frame"
)

// Defaults of a Transport.
const (
	// DefaultDrainLimit is far above the time of a call that does not wait for a run, so that at the end of input every
	// ordinary call is still answered.
	DefaultDrainLimit = 10 * time.Second
	// DefaultStopLimit is below the patience of hosts, which send SIGKILL some seconds after SIGTERM.
	DefaultStopLimit = 2 * time.Second
)

// Transport is an mcp.Transport over In and Out. The zero values of the other fields mean the defaults.
type Transport struct {
	In  io.Reader
	Out io.Writer
	// MaxMessageBytes bounds a line; a longer one is rejected and skipped without being kept in memory.
	MaxMessageBytes int
	// DrainLimit bounds how long pending requests are waited for when In has ended, StopLimit when the context of
	// Connect has.
	DrainLimit, StopLimit time.Duration
	// Logger receives messages that cannot be answered; nil discards them.
	Logger *slog.Logger

	ended     chan struct{}
	makeEnded sync.Once
}

// Ended is closed when In has ended and every message of it has been passed on: then no client waits for
// anything but the answers to those.
func (t *Transport) Ended() <-chan struct{} {
	t.makeEnded.Do(func() { t.ended = make(chan struct{}) })
	return t.ended
}

// Connect begins to read; a Transport is connected once. When ctx ends nothing more is read and the connection closes once the
// pending requests are answered, or after StopLimit.
func (t *Transport) Connect(ctx context.Context) (mcp.Connection, error) {
	t.Ended() // makes it
	c := &conn{
		ended:   t.ended,
		out:     t.Out,
		log:     t.Logger,
		lines:   make(chan frame.Text),
		stop:    ctx.Done(),
		closed:  make(chan struct{}),
		pending: map[jsonrpc.ID]*call{},

		drainLimit: cmp.Or(t.DrainLimit, DefaultDrainLimit),
		stopLimit:  cmp.Or(t.StopLimit, DefaultStopLimit),
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	// A read from In cannot be interrupted in general, so this goroutine may outlive the connection; it ends with the
	// next line or the end of input.
	go c.read(frame.NewLines(t.In, cmp.Or(t.MaxMessageBytes, frame.DefaultMaxMessageBytes)))
	return c, nil
}
