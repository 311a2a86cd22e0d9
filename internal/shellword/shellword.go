// Package shellword quotes words of commands that people copy into a shell.
package shellword

import (
	"slices"
	"strings"
)

// Line joins words into a line that a POSIX shell splits into the same words.
func Line(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

// Command returns the line of a command with its operands and flags. An operand that looks like a flag comes last, after "--".
func Command(command, operands []string, flags ...string) string {
	if slices.ContainsFunc(operands, func(o string) bool { return strings.HasPrefix(o, "-") }) {
		return Line(slices.Concat(command, flags, []string{"--"}, operands)...)
	}
	return Line(slices.Concat(command, operands, flags)...)
}

// Quote quotes a word with single quotes if necessary.
func Quote(word string) string {
	plain := word != "" && !slices.ContainsFunc([]rune(word), func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,#", r)
	})
	if plain && !strings.HasPrefix(word, "#") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
