package problem

import (
	"fmt"
	"strings"
)

const (
	// MaxText bounds, in bytes, the text of a failure that an executor, a host, a program or a schema wrote. Every answer about
	// a failed run repeats it.
	MaxText = 4 << 10
	// MaxQuoted bounds, in bytes, an argument in an error's message.
	MaxQuoted = 200
)

// Excerpt returns a text of at most so many bytes unchanged, and the beginning of a longer one, marked with "…" and its full size in bytes. It does not split characters.
func Excerpt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + fmt.Sprintf("… (%d bytes)", len(text))
}

// Clip returns the first bytes of a text, marked with "…" if there are more than most. It does not split characters.
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

// Format is fmt.Sprintf, but %q quotes an Excerpt of MaxQuoted bytes of a string: a message names an argument without
// repeating a long one.
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
			args, cut = append([]any(nil), args...), true // the caller's slice stays unchanged
		}
		args[i] = Excerpt(text, MaxQuoted)
	}
	return fmt.Sprintf(format, args...)
}

// verbs returns the verb of each argument of a format, in order. It returns nil for a format that numbers its arguments or
// takes a width from one.
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
