package catalog

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// Search returns the workflows that have a word of the query in their name or description, the best first: a word in the name
// counts three times one in the description. A query without words finds all, in their order.
func (s *Snapshot) Search(query string) []*Workflow {
	asked := wordsOf(query)
	if len(asked) == 0 {
		return s.Workflows
	}
	score := map[*Workflow]int{}
	var found []*Workflow
	for _, w := range s.Workflows {
		name, description := wordsOf(w.Name), wordsOf(w.Description)
		for _, word := range asked {
			switch like := func(other string) bool { return alike(word, other) }; {
			case slices.ContainsFunc(name, like):
				score[w] += 3
			case slices.ContainsFunc(description, like):
				score[w]++
			}
		}
		if score[w] > 0 {
			found = append(found, w)
		}
	}
	slices.SortStableFunc(found, func(a, b *Workflow) int { return cmp.Compare(score[b], score[a]) })
	return found
}

// wordsOf returns the words of a text in lower case, without stop words.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.DeleteFunc(words, func(w string) bool { return slices.Contains(emptyWords, w) })
}

var emptyWords = strings.Fields("a an and are as at be by do for from how i if in is it its of on or that the this to we what which with workflow workflows")

// alike reports whether two words are one word in different forms: refund and refunds, approve and approval.
func alike(a, b string) bool {
	if a == b {
		return true
	}
	common := 0
	for i := 0; i < len(a) && i < len(b) && a[i] == b[i]; i++ {
		common++
	}
	return common >= 4 && max(len(a), len(b))-common <= 3
}
