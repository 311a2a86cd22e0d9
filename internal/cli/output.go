package cli

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"syscall"
)

// output is where a result goes. It remembers the first write that failed, so that a command whose result was lost, on a
// disk that is full for instance, fails even if its own error was ignored.
type output struct {
	out io.Writer
	err error
}

// Write implements io.Writer. After a failure nothing more is written: a result with a gap is worse than one cut off.
func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.out.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	o.err = err
	return n, err
}

// verdict returns what ends the command: its own error, or that its result was lost. A reader that has gone away, as in
// "list | head", has seen what it wanted, and nothing is said.
func (o *output) verdict(err error) error {
	_, isSilent := errors.AsType[silent](err)
	if o.err == nil || err != nil && !isSilent && !errors.Is(err, o.err) {
		return err
	}
	if readerGone(o.err) {
		return silent{exitFailed}
	}
	return fmt.Errorf("the output could not be written: %w", o.err)
}

// readerGone reports whether the reader of a pipe has closed it.
func readerGone(err error) bool {
	const brokenPipe, noData = syscall.Errno(109), syscall.Errno(232) // what Windows says in the place of EPIPE
	if errno, ok := errors.AsType[syscall.Errno](err); ok && runtime.GOOS == "windows" && (errno == brokenPipe || errno == noData) {
		return true
	}
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}
