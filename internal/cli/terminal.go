package cli

import (
	"os"
	"strings"

	"github.com/mattn/go-isatty"

	"github.com/workflows-engine/workflows-engine/internal/config"
)

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && (isatty.IsTerminal(file.Fd()) || isatty.IsCygwinTerminal(file.Fd()))
}

// palette colours words for a terminal, in marks that a plainWriter turns into colours. The zero value leaves text as
// it is.
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
