package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/mattn/go-isatty"

	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && (isatty.IsTerminal(file.Fd()) || isatty.IsCygwinTerminal(file.Fd()))
}

// palette colours words for a terminal, with marks that a plainWriter turns into colours. The zero value leaves text
// unchanged.
type palette struct{ on bool }

// newPalette honours NO_COLOR (any value that is not empty) and TERM=dumb.
func newPalette(terminal bool, env config.Environment) palette {
	plain := variable(env, "NO_COLOR") != "" || variable(env, "TERM") == "dumb"
	return palette{on: terminal && !plain}
}

// variable returns the value of a variable, "" for one that is not set.
func variable(env config.Environment, name string) string {
	for _, entry := range env.Variables {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

func (p palette) wrap(code, text string) string {
	if !p.on || text == "" {
		return text
	}
	return markBegin + code + markEnd + text + markBegin + "0" + markEnd
}

func (p palette) good(text string) string  { return p.wrap("32", text) }
func (p palette) bad(text string) string   { return p.wrap("31", text) }
func (p palette) wait(text string) string  { return p.wrap("33", text) }
func (p palette) faint(text string) string { return p.wrap("2", text) }
func (p palette) bold(text string) string  { return p.wrap("1", text) }

// Text from definitions, histories and outputs must not control the terminal: it could hide lines,
// change the title or pretend to be this program. All output for people therefore goes through a plainWriter. In JSON
// the same characters are escaped, which keeps its meaning.

// plainCell is jsonvalue.Plain for a cell of a table: its line ends and tabs would begin rows and columns.
func plainCell(text string) string {
	return strings.NewReplacer("\n", `\u000a`, "\t", `\u0009`).Replace(jsonvalue.Plain(text))
}

// The palette marks its colours with characters that Unicode reserves for use inside programs, so that the writer can
// distinguish them from the text.
const (
	markBegin = "\ufdd0"
	markEnd   = "\ufdd1"
)

// plainWriter makes text safe for a terminal and turns the palette's marks into colours. Each call must end with a whole character.
// The live view and the log share one, so each call is written whole.
type plainWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *plainWriter) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := io.WriteString(w.out, marks.Replace(jsonvalue.Plain(string(text)))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// marks replaces only the palette's colours: a text with such marks can at most be coloured.
var marks = strings.NewReplacer(
	markBegin+"32"+markEnd, "\x1b[32m", markBegin+"31"+markEnd, "\x1b[31m", markBegin+"33"+markEnd, "\x1b[33m",
	markBegin+"2"+markEnd, "\x1b[2m", markBegin+"1"+markEnd, "\x1b[1m", markBegin+"0"+markEnd, "\x1b[0m",
	markBegin, "", markEnd, "",
)

// output writes a result. It keeps the first write error, so that a command whose result was lost, on a
// full disk for instance, fails even if the error was ignored.
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

// verdict returns the error of a command: its own, or the loss of its result. A closed pipe, as in "list | head", is not an
// error.
func (o *output) verdict(err error) error {
	_, isSilent := errors.AsType[silent](err)
	if o.err == nil || err != nil && !isSilent && !errors.Is(err, o.err) {
		return err
	}
	if readerGone(o.err) {
		return silent{exitFailed}
	}
	return fmt.Errorf("write output: %w", o.err)
}

// readerGone reports whether the reader of a pipe has closed it.
func readerGone(err error) bool {
	const brokenPipe, noData = syscall.Errno(109), syscall.Errno(232) // Windows returns these instead of EPIPE
	if errno, ok := errors.AsType[syscall.Errno](err); ok && runtime.GOOS == "windows" && (errno == brokenPipe || errno == noData) {
		return true
	}
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}
