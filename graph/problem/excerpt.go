package problem

import (
	"fmt"
	"strings"
)

const (
	// MaxText is how many bytes are kept of a text that tells of a failure and that somebody else wrote: an executor, a
	// host, a program, or a schema about a large value. Every answer about a run that failed repeats it.
	MaxText = 4 << 10
	// MaxQuoted is how many bytes of an argument an error's message quotes.
	MaxQuoted = 200
)

// Excerpt returns a text of at most so many bytes as it is, and of a longer one the beginning, marked with "…" and the
// number of bytes of the whole. It cuts no character in two.
func Excerpt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + fmt.Sprintf("… (%d bytes)", len(text))
}

// Clip returns the first bytes of a text, marked with "…" if there are more than most. It cuts no character in two.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// ClipRunes is Clip for a number of characters.
func ClipRunes(text string, most int) string {
	for i := range text {
		if most == 0 {
			return text[:i] + "…"
		}
		most--
	}
	return text
}

// Format is fmt.Sprintf, but a %q quotes an Excerpt of MaxQuoted bytes of a string: a message names what a caller sent,
// and does not send it back.
func Format(format string, args ...any) string {
	cut := false
	for i, verb := range verbs(format) {
		if i >= len(args) {
			break
		}
		text, isText := args[i].(string)
		if verb != 'q' || !isText || len(text) <= MaxQuoted {
			continue
		}
		if !cut {
			args, cut = append([]any(nil), args...), true // the caller's stay as they are
		}
		args[i] = Excerpt(text, MaxQuoted)
	}
	return fmt.Sprintf(format, args...)
}

// verbs returns the verb of each argument of a format, in order; none if it names arguments by number or takes a width from
// one.
func verbs(format string) (list []byte) {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		for i++; i < len(format) && strings.IndexByte("+-# .0123456789", format[i]) >= 0; i++ {
		}
		switch {
		case i == len(format) || format[i] == '[' || format[i] == '*':
			return nil
		case format[i] != '%':
			list = append(list, format[i])
		}
	}
	return list
}
