package problem

import "strings"

// OrList joins names as in "a, b or c".
func OrList[T ~string](names []T) string { return join(names, " or ") }

// AndList joins names as in "a, b and c".
func AndList[T ~string](names []T) string { return join(names, " and ") }

func join[T ~string](names []T, last string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i > 0 && i == len(names)-1:
			b.WriteString(last)
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(name))
	}
	return b.String()
}
