package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

// notices are the server's messages about itself on stderr: lines for people or, with --log-format json, records, because a
// collector of records expects one in every line.
type notices struct {
	lines io.Writer
	log   *slog.Logger // nil for lines
}

// newNotices returns notices that are written at every log level.
func newNotices(c *config.Config, stderr io.Writer) notices {
	if c == nil || c.LogFormat != config.LogJSON {
		return notices{lines: stderr}
	}
	always := *c
	always.LogLevel = min(c.LogLevel, slog.LevelInfo)
	return notices{log: always.Logger(stderr)}
}

func (n notices) say(line string) {
	if n.log != nil {
		n.log.Info(line)
		return
	}
	fmt.Fprintln(n.lines, "workflows-engine-mcp: "+line)
}

// warn writes a warning; message is the constant message of its log record.
func (n notices) warn(message, warning string) {
	if n.log != nil {
		n.log.Warn(message, "warning", warning)
		return
	}
	n.say("warning: " + warning)
}

// report writes the error that keeps the server from working, and returns it marked as printed.
func (n notices) report(err error) error {
	if n.log == nil {
		printError(n.lines, err)
		return said{err}
	}
	return n.failed(err)
}

// failed logs the error that ended the server, and returns it marked as printed; printError prints errors with several
// lines.
func (n notices) failed(err error) error {
	if err == nil || n.log == nil {
		return err
	}
	if _, done := errors.AsType[said](err); done {
		return err
	}
	attributes := []any{"error", err}
	if e, ok := problem.As(err); ok {
		attributes = append(attributes, "code", string(e.Code), "hint", e.Hint)
	}
	n.log.Error("server failed", attributes...)
	return said{err}
}

// said is an error that has been written.
type said struct{ error }

func (s said) Unwrap() error { return s.error }
