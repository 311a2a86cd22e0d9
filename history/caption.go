package history

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Limits of titles and labels, in characters.
const (
	maxTitle      = 200
	maxLabels     = 16
	maxLabelName  = 64
	maxLabelValue = 200
)

// CheckCaption returns VALIDATION_ERROR unless the title and the labels are short single lines.
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

// checkLine returns an error if a text has more than most characters, or has invisible ones.
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

// Seen reports whether a text is valid UTF-8 without control characters, formatting characters and line separators. Such characters hide
// content in lists and logs.
func Seen(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) })
}
