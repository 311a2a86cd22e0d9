// Package suggest finds the known name that is nearest to a misspelt one.
package suggest

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxNames bounds how many names are compared, and maxLength how long they may be in bytes: a suggestion must not cost
// more than the check that asks for it.
const (
	maxNames  = 2000
	maxLength = 64
)

// Nearest returns the name with the smallest edit distance to a wrong one, the first of several; "" if more than about a
// third of it differs. Letter case does not count, and neither do words that both begin with.
func Nearest(wrong string, names []string) string {
	if wrong == "" || len(wrong) > maxLength || len(names) > maxNames {
		return ""
	}
	best, bestDistance := "", 0
	for _, name := range names {
		if name == "" || name == wrong || len(name) > maxLength {
			continue
		}
		x, y := differing(strings.ToLower(wrong), strings.ToLower(name))
		limit := max(1, (min(len(x), len(y))+1)/3)
		difference := utf8.RuneCountInString(x) - utf8.RuneCountInString(y)
		if max(difference, -difference) > limit { // then so is the distance
			continue
		}
		d := distance([]rune(x), []rune(y))
		if d <= limit && (best == "" || d < bestDistance) {
			best, bestDistance = name, d
		}
	}
	return best
}

// differing returns two names without the words that both begin with: awaiting_timer is not like awaiting_signal.
func differing(x, y string) (string, string) {
	words := 0
	for i := 0; i < min(len(x), len(y)) && x[i] == y[i]; i++ {
		if x[i] == '_' || x[i] == '-' {
			words = i + 1
		}
	}
	return x[words:], y[words:]
}

// DidYouMean is a hint with the nearest of the names, "" if all differ much.
func DidYouMean(wrong string, names []string) string {
	return Hint(Nearest(wrong, names))
}

// Hint is a hint with a suggested name, "" for "".
func Hint(near string) string {
	if near == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", near)
}

// distance counts the insertions, deletions, replacements and swaps of neighbours that turn x into y.
func distance(x, y []rune) int {
	before, previous, current := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(x); i++ {
		current[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(y)]
}
