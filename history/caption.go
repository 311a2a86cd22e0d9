package history

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Bounds of what people find a run by, in characters.
const (
	maxTitle      = 200
	maxLabels     = 16
	maxLabelName  = 64
	maxLabelValue = 200
)

// CheckCaption refuses a title or labels that are no short lines, with VALIDATION_ERROR.
func CheckCaption(title string, labels map[string]string) error {
	if err := checkLine("the title", title, maxTitle); err != nil {
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
		if err := checkLine(problem.Format("the name %q of a label", name), name, maxLabelName); err != nil {
			return err
		}
		if err := checkLine(problem.Format("the label %q", name), labels[name], maxLabelValue); err != nil {
			return err
		}
	}
	return nil
}

// checkLine refuses a text that is longer than so many characters or that has some that cannot be seen.
func checkLine(what, text string, most int) error {
	if n := utf8.RuneCountInString(text); n > most {
		return problem.New(problem.ValidationError, "%s has %d characters, the limit is %d", what, n, most).WithHint("Shorten it.")
	}
	if !Seen(text) {
		return problem.New(problem.ValidationError, "%s contains characters that cannot be seen", what).
			WithHint("Write one line of text.")
	}
	return nil
}

// Seen reports whether a text has no control and formatting characters and no line separators: in a list or a log they hide what stands
// there.
func Seen(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) })
}
