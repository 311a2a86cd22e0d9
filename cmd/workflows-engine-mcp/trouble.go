package main

import (
	"context"
	"io"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// serveTrouble serves without an engine: it answers the handshake, the lists, and each call with the error that keeps
// the server from working. A host would not show its user why a server ends at its start. It returns the error
// when the input has ended.
func serveTrouble(ctx context.Context, c *settings, trouble error, open transport, notes notices, stderr io.Writer) error {
	ctx, end := watchParent(ctx, c, notes)
	defer end()
	trouble = notes.report(trouble)
	options := mcpserver.Options{
		Version: buildVersion(), DefaultMode: machine.HostMediated,
		Known: func(context.Context) error { return trouble }, Trouble: func(context.Context) error { return trouble },
	}
	if c.Config != nil {
		options.Logger, options.Redaction = c.Logger(stderr), c.AnswerRedaction()
	}
	// The error that is reported matters more than a broken connection.
	_ = open(ctx, mcpserver.New(nil, options), options.Logger, options.Known, nil)
	return trouble
}

// openPatience is how long the handshake waits for the first attempt to open the database, so that the instructions can
// report a failure. A successful attempt takes a fraction of it.
const openPatience = 250 * time.Millisecond

// opener opens the engine: first in the background, and after a failure again at the next call.
type opener struct {
	open func() error
	// report reports a failure; a repeated failure only once.
	report func(error) error

	// turn holds one value: the permission to use the fields below.
	turn          chan struct{}
	opened, ended bool
	failure       error
	// tried is closed after the first attempt.
	tried chan struct{}
}

func newOpener(open func() error, report func(error) error) *opener {
	return &opener{open: open, report: report, turn: make(chan struct{}, 1), tried: make(chan struct{})}
}

// try opens the engine unless it is open. Concurrent calls wait.
func (o *opener) try(ctx context.Context) error {
	select {
	case o.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-o.turn }()
	if o.opened || o.ended {
		return o.failure
	}
	err := o.open()
	switch {
	case err == nil:
		o.opened, o.failure = true, nil
	case o.failure == nil || o.failure.Error() != err.Error():
		o.failure = o.report(err)
	}
	return o.failure
}

// known returns the error of the first attempt, nil if it succeeded or takes long.
func (o *opener) known(context.Context) error {
	late := time.NewTimer(openPatience)
	defer late.Stop()
	select {
	case <-o.tried:
	case <-late.C:
		return nil
	}
	o.turn <- struct{}{}
	defer func() { <-o.turn }()
	return o.failure
}

// end prevents further attempts, and returns why the engine is not open, nil if it is.
func (o *opener) end() error {
	o.turn <- struct{}{}
	defer func() { <-o.turn }()
	o.ended = true
	return o.failure
}
