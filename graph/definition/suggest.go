package definition

import (
	"fmt"
	"strings"
)

// didYouMean suggests the name that is nearest to a wrong one, "" if none is near.
func didYouMean(wrong string, names []string) string { return didYouMeanOne(nearest(wrong, names)) }

func didYouMeanOne(near string) string {
	if near == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", near)
}

// suggestFrom bounds how many names are compared, and compareLength how long they may be: a suggestion must not cost
// more than the check that asks for it.
const (
	suggestFrom   = 2000
	compareLength = 64
)

// nearest gives the name with the smallest edit distance, the first of several, if no more than about a third of it
// differs. Letter case counts little.
func nearest(wrong string, names []string) string {
	if wrong == "" || len(wrong) > compareLength || len(names) > suggestFrom {
		return ""
	}
	best, bestDistance := "", 0
	for _, name := range names {
		if name == "" || name == wrong || len(name) > compareLength {
			continue
		}
		limit := max(1, (min(len(wrong), len(name))+1)/3)
		if max(len(wrong), len(name))-min(len(wrong), len(name)) > 4*limit {
			continue // no characters of up to four bytes can make up for that
		}
		d := editDistance(strings.ToLower(wrong), strings.ToLower(name))
		if d <= limit && (best == "" || d < bestDistance) {
			best, bestDistance = name, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions, replacements and swaps of neighbours that turn a into b.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
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
