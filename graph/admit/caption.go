package admit

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// How long the title and the labels of a run may be, in characters, and how many labels it may have.
const (
	maxTitle      = 200
	maxLabels     = 16
	maxLabelName  = 64
	maxLabelValue = 200
)

// Caption refuses a title or labels that are no short lines.
func Caption(title string, labels map[string]string) error {
	if err := line("the title", title, maxTitle); err != nil {
		return err
	}
	if len(labels) > maxLabels {
		return problem.New(problem.ValidationError, "a run has at most %d labels, found %d", maxLabels, len(labels)).
			WithHint("Leave some out; the input can say more.")
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if strings.TrimSpace(name) == "" || strings.Contains(name, "=") {
			return problem.New(problem.ValidationError, "invalid name %q of a label", name).
				WithHint("Use letters, digits and signs other than =, as in customer.")
		}
		if err := line(problem.Format("the name %q of a label", name), name, maxLabelName); err != nil {
			return err
		}
		if err := line(problem.Format("the label %q", name), labels[name], maxLabelValue); err != nil {
			return err
		}
	}
	return nil
}

// line refuses a text that is longer than so many characters or that has some that cannot be seen.
func line(what, text string, most int) error {
	if n := utf8.RuneCountInString(text); n > most {
		return problem.New(problem.ValidationError, "%s has %d characters, the limit is %d", what, n, most).WithHint("Shorten it.")
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unseen) {
		return problem.New(problem.ValidationError, "%s contains characters that cannot be seen", what).
			WithHint("Write one line of text.")
	}
	return nil
}
