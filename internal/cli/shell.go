package cli

import (
	"slices"
	"strings"
)

// program is the name that commands shown to people begin with.
const program = "workflows-engine"

// commandLine joins words to a line that a POSIX shell splits into the same words.
func commandLine(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellQuote(w)
	}
	return strings.Join(quoted, " ")
}

// shellQuote puts single quotes around a word if it needs them.
func shellQuote(word string) string {
	plain := word != "" && !slices.ContainsFunc([]rune(word), func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,#", r)
	})
	if plain && !strings.HasPrefix(word, "#") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
