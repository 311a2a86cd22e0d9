package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// maxReadBytes bounds a file that is read as a whole. What takes it has a smaller bound of its own.
const maxReadBytes = 256 << 20

// interruptible is a reader whose Read returns when ctx ends. Reading a terminal or a pipe cannot be cancelled, and neither can opening a
// pipe: the goroutine that does so may outlive the call; it ends with the process, which is about to.
type interruptible struct {
	ctx  context.Context
	from io.Reader
	// reading gets what the goroutine has read; nil while there is none.
	reading chan chunk
	rest    chunk
}

// chunk is the outcome of a Read.
type chunk struct {
	text []byte
	err  error
}

// Read implements io.Reader.
func (r *interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if len(r.rest.text) == 0 && r.rest.err == nil {
		if r.reading == nil {
			reading := make(chan chunk, 1)
			r.reading = reading
			go func() {
				buffer := make([]byte, 64<<10)
				n, err := r.from.Read(buffer)
				reading <- chunk{buffer[:n], err}
			}()
		}
		select {
		case r.rest = <-r.reading:
			r.reading = nil
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
	n := copy(p, r.rest.text)
	if r.rest.text = r.rest.text[n:]; n > 0 {
		return n, nil
	}
	err := r.rest.err
	r.rest.err = nil // a terminal can be read on after its end
	return 0, err
}

// fileReader reads a file, which it opens at the first Read: opening a pipe waits for its writer.
type fileReader struct {
	path string
	file *os.File
}

// Read implements io.Reader.
func (r *fileReader) Read(p []byte) (int, error) {
	if r.file == nil {
		file, err := os.Open(r.path)
		if err != nil {
			return 0, err
		}
		r.file = file
	}
	n, err := r.file.Read(p)
	if err != nil {
		_ = r.file.Close() // nothing was written
	}
	return n, err
}

// unnamed is an error of the file system without the path, which is shown as the user wrote it.
func unnamed(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// readAll reads a file that the command line names, or standard input for "-", until the command is interrupted.
func (a *app) readAll(file string) ([]byte, error) {
	var text []byte
	err := a.reading(file, func(in io.Reader) (err error) {
		text, err = io.ReadAll(io.LimitReader(in, maxReadBytes+1))
		if err == nil && len(text) > maxReadBytes {
			err = fmt.Errorf("it has more than %d bytes", maxReadBytes)
		}
		return err
	})
	return text, err
}

// reading lets read take what it needs of a file, or of standard input.
func (a *app) reading(file string, read func(io.Reader) error) error {
	in, name := a.stdin, "standard input"
	if file != standardInput {
		in, name = &interruptible{ctx: a.ctx, from: &fileReader{path: a.path(file)}}, file
	}
	err := read(in)
	if _, said := problem.As(err); err == nil || said {
		return err
	}
	if a.ctx.Err() != nil {
		return a.ctx.Err()
	}
	return usage("%s cannot be read", name).WithCause(unnamed(err))
}
