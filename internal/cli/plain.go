package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Text from definitions, histories and outputs must not steer the terminal that it is shown on: it could hide lines,
// change the title or pretend to be this program. All output for people therefore goes through a plainWriter. In JSON
// the same characters are escaped, which changes nothing of what it means.

// plain makes characters visible that a terminal would act on: controls other than line ends and tabs, and those that
// change the direction of text. They become \u001b and the like, which is what JSON writes for them. Bytes that are no
// UTF-8 become the replacement character, since some terminals take them for controls too.
func plain(text string) string {
	if !strings.ContainsFunc(text, acts) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if acts(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// plainCell is plain for a cell of a table: its line ends and tabs would begin rows and columns.
func plainCell(text string) string {
	return strings.NewReplacer("\n", `\u000a`, "\t", `\u0009`).Replace(plain(text))
}

func acts(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
		return true
	}
	return false
}

// The palette marks its colours with characters that Unicode keeps for the inside of programs, so that the writer can
// tell them from what a text contains.
const (
	markBegin = "\ufdd0"
	markEnd   = "\ufdd1"
)

// plainWriter makes text harmless and turns the palette's marks into colours. Each call must end with a whole character.
// The live view and the log share one, so each call is written whole.
type plainWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *plainWriter) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := io.WriteString(w.out, marks.Replace(plain(string(text)))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// marks knows the palette's colours alone: a text with marks of its own can at most be coloured.
var marks = strings.NewReplacer(
	markBegin+"32"+markEnd, "\x1b[32m", markBegin+"31"+markEnd, "\x1b[31m", markBegin+"33"+markEnd, "\x1b[33m",
	markBegin+"2"+markEnd, "\x1b[2m", markBegin+"1"+markEnd, "\x1b[1m", markBegin+"0"+markEnd, "\x1b[0m",
	markBegin, "", markEnd, "",
)
